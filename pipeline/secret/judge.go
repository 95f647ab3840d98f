package secret

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// judge decides whether a match is a secret. end is where the text that the
// rule saw ends; a match that touches it may go on.
func (w *work) judge(v *view, r *rule, loc []int, end int) bool {
	c := candidate{text: v.text, start: loc[0], end: loc[1]}
	c.value, c.until = r.value(loc)
	c.value, c.until = trimmed(v.text, c.value, c.until)
	if v.joints != nil && !w.split(v, r, c) {
		return true
	}
	if c.value == c.until || r.entropy != 0 && entropy(v.text[c.value:c.until]) <= r.entropy {
		return true
	}
	for c.start > 0 && loc[0]-c.start < r.before && isWord(v.text[c.start-1]) {
		c.start--
	}
	if !w.spend(&w.exprs, 2*(c.end-c.start)) {
		return false
	}
	if w.allowed(v, r, &c) {
		return true
	}
	if c.until == end {
		for c.until < len(v.text) && v.text[c.until] > ' ' {
			c.until++
		}
	}
	w.secret(v, c.value, c.until, r.kind)
	return true
}

// split reports whether a match in a joined view is a secret that was split. It
// is not if a joint only brings the next line's words to the end of a value
// that is one without them.
func (w *work) split(v *view, r *rule, c candidate) bool {
	any, firm := v.spans(c.value, c.until)
	if !any || r.generic && !firm {
		return false
	}
	if firm {
		return true
	}
	i, _ := slices.BinarySearchFunc(v.joints, int32(c.start)+1, func(j joint, at int32) int { return cmp.Compare(j.at, at) })
	end := int(v.joints[i].at)
	if !w.spend(&w.exprs, end-c.start) || r.loose.match(v.text, c.start, end) == nil {
		return true
	}
	return v.wrapped(i, c.until)
}

// wrapped reports whether a value looks as if it was broken at joint i because
// the line was full: the line is long, and the value goes on to the end of
// another.
func (v *view) wrapped(i, until int) bool {
	if i > 0 && v.joints[i].at-v.joints[i-1].at < fullLine {
		return false
	}
	_, end := slices.BinarySearchFunc(v.joints, int32(until), func(j joint, at int32) int { return cmp.Compare(j.at, at) })
	return end || until == len(v.text) || isQuote(v.text[until])
}

// trimmed takes newlines and quotes off a value.
func trimmed(text []byte, start, end int) (int, int) {
	for start < end && (text[start] == '\n' || isQuote(text[start])) {
		start++
	}
	for start < end && (text[end-1] == '\n' || isQuote(text[end-1])) {
		end--
	}
	return start, end
}

// inWord reports whether a joined view has a letter or digit before start, on the
// same line. There, loosened rules would begin within words.
func (v *view) inWord(start int) bool {
	if v.joints == nil || start == 0 || !isWord(v.text[start-1]) || v.text[start-1] == '.' || v.text[start-1] == '-' {
		return false
	}
	_, at := slices.BinarySearchFunc(v.joints, int32(start), func(j joint, at int32) int { return cmp.Compare(j.at, at) })
	return !at
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || c == '-' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
}

// allowed asks the allowlists of all rules, then the rule's own.
func (w *work) allowed(v *view, r *rule, c *candidate) bool {
	c.engine = w.engine
	root, lo, hi := v.root(c.value, c.until)
	root.ranges(lo, hi, func(from, _ int) { c.path = w.source.path(from) })
	for _, lists := range [][]allowlist{w.set.allowed(), r.allowed} {
		for _, a := range lists {
			if a.allows(*c) {
				return true
			}
		}
	}
	return false
}

// An allowlist says which matches are no secrets (gitleaks, "allowlists").
type allowlist struct {
	all     bool   // every condition must hold, not just one
	target  string // what regexes look at: "", "match" or "line"
	regexes []*condition
	paths   []*regexp.Regexp
	words   func() *keywords // nil: no condition
}

// A condition is an expression that an allowlist looks for. Few hold, so an
// automaton is asked first.
type condition struct {
	expr *regexp.Regexp
	prog func() *syntax.Prog
}

func newCondition(re *regexp.Regexp) *condition {
	return &condition{re, sync.OnceValue(func() *syntax.Prog {
		tree, err := syntax.Parse(re.String(), syntax.Perl)
		if err != nil {
			panic("secret: " + err.Error()) // it compiled before
		}
		return program(&syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{anything(), tree}})
	})}
}

func (c *condition) holds(e *engine, text []byte) bool {
	a := e.conditions[c]
	if a == nil {
		a = newAutomaton(c.prog())
		e.conditions[c] = a
	}
	if _, maybe := a.run(text, 0, len(text)); !maybe {
		return false
	}
	return c.expr.Match(text)
}

// A candidate is a match that is to be judged.
type candidate struct {
	text         []byte
	start, end   int // the match
	value, until int // the secret in it
	path         string
	engine       *engine
}

// lineReach is how far around a match an allowlist may look for the rest of
// its line.
const lineReach = 256

func newAllowlists(files []allowFile) ([]allowlist, error) {
	var out []allowlist
	for _, file := range files {
		a := allowlist{target: file.RegexTarget}
		switch strings.ToUpper(file.Condition) {
		case "", "OR", "||":
		case "AND", "&&":
			a.all = true
		default:
			return nil, fmt.Errorf("allowlist: unknown condition %q", file.Condition)
		}
		switch file.RegexTarget {
		case "", "match", "line":
		case "secret":
			a.target = ""
		default:
			return nil, fmt.Errorf("allowlist: unknown regexTarget %q", file.RegexTarget)
		}
		regexes, err := compileAll(file.Regexes)
		if err != nil {
			return nil, err
		}
		for _, re := range regexes {
			a.regexes = append(a.regexes, newCondition(re))
		}
		if a.paths, err = compileAll(file.Paths); err != nil {
			return nil, err
		}
		if len(file.StopWords) > 0 {
			a.words = sync.OnceValue(func() *keywords {
				return newKeywords(slices.DeleteFunc(slices.Clone(file.StopWords), func(s string) bool { return s == "" }))
			})
		}
		out = append(out, a)
	}
	return out, nil
}

func compileAll(exprs []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, expr := range exprs {
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil, fmt.Errorf("allowlist: %w", err)
		}
		out = append(out, re)
	}
	return out, nil
}

// allows reports whether the candidate is excused. Commits are not known here,
// so a condition on them never holds.
func (a allowlist) allows(c candidate) bool {
	var checks []bool
	if len(a.regexes) > 0 {
		anyHolds := func(text []byte) bool {
			return slices.ContainsFunc(a.regexes, func(re *condition) bool { return re.holds(c.engine, text) })
		}
		switch a.target {
		case "line":
			checks = append(checks, a.lineAllows(c))
		case "match":
			checks = append(checks, anyHolds(c.text[c.start:c.end]))
		default:
			checks = append(checks, anyHolds(c.text[c.value:c.until]))
		}
	}
	if len(a.paths) > 0 {
		checks = append(checks, c.path != "" && slices.ContainsFunc(a.paths, func(re *regexp.Regexp) bool { return re.MatchString(c.path) }))
	}
	if a.words != nil {
		checks = append(checks, a.words().in(c.text[c.value:c.until]))
	}
	for _, ok := range checks {
		if ok != a.all {
			return ok
		}
	}
	return a.all && len(checks) > 0
}

// lineAllows looks at the line around the match. What it finds must overlap
// the match: a patch must not excuse itself by a word elsewhere in the line.
func (a allowlist) lineAllows(c candidate) bool {
	from, to := c.start, c.end
	for from > 0 && c.start-from < lineReach && c.text[from-1] != '\n' {
		from--
	}
	for to < len(c.text) && to-c.end < lineReach && c.text[to] != '\n' {
		to++
	}
	for _, re := range a.regexes {
		if !re.holds(c.engine, c.text[from:to]) {
			continue
		}
		for _, loc := range re.expr.FindAllIndex(c.text[from:to], -1) {
			if from+loc[0] < c.end && from+loc[1] > c.start {
				return true
			}
		}
	}
	return false
}

// entropy is Shannon's, in bits a character, as gitleaks computes it: counted
// in runes, weighed by bytes.
func entropy(text []byte) float64 {
	var ascii [utf8.RuneSelf]int
	other := map[rune]int{}
	for _, r := range string(text) {
		if r < utf8.RuneSelf {
			ascii[r]++
		} else {
			other[r]++
		}
	}
	sum, scale := 0.0, 1/float64(len(text))
	weigh := func(n int) {
		if n > 0 {
			p := float64(n) * scale
			sum -= p * math.Log2(p)
		}
	}
	for _, n := range ascii {
		weigh(n)
	}
	for _, n := range other {
		weigh(n)
	}
	return sum
}
