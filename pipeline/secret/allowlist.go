package secret

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
)

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

func (c *condition) holds(automata map[*condition]*automaton, text []byte) bool {
	a := automata[c]
	if a == nil {
		a = newAutomaton(c.prog())
		automata[c] = a
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
	automata     map[*condition]*automaton // those made so far
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
			return slices.ContainsFunc(a.regexes, func(re *condition) bool { return re.holds(c.automata, text) })
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
		if !re.holds(c.automata, c.text[from:to]) {
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
