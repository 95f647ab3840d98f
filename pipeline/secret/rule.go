package secret

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A rule is one of gitleaks' rules, prepared so that it is tried only where it
// can match.
type rule struct {
	kind     string
	group    int
	entropy  float64
	allowed  []allowlist
	generic  bool // takes almost any value
	bound    bool // does not begin within a word
	keywords []string
	leads    []string // each match begins with one; nil: not known
	before   int      // how far an optional beginning reaches before that
	strict   matcher
	loose    matcher // for joined lines
}

// newRule prepares a rule from its file form. Expressions are RE2: linear.
func newRule(file ruleFile) (*rule, error) {
	r := &rule{kind: kindOf(file.ID), group: file.SecretGroup, entropy: file.Entropy, keywords: file.Keywords}
	if r.kind == "" {
		return nil, fmt.Errorf("rule %q: id has no letters or digits", file.ID)
	}
	tree, err := syntax.Parse(file.Regex, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("rule %s: %w", r.kind, err)
	}
	if r.group < 0 || r.group > tree.MaxCap() {
		return nil, fmt.Errorf("rule %s: regex has no group %d", r.kind, r.group)
	}
	r.generic = generic[r.kind]
	if !r.generic {
		tree = widened(tree)
	}
	rest, leads := lead(tree)
	if leads == nil {
		rest = tree
	} else if !rest.Equal(tree) {
		r.before = 50
	}
	r.leads = leads
	r.bound = bound(rest)
	r.strict, r.loose = newMatcher(rest, false), newMatcher(rest, true)
	return r, nil
}

// bound reports whether an expression begins with a word boundary.
func bound(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpWordBoundary:
		return true
	case syntax.OpConcat, syntax.OpCapture:
		return bound(re.Sub[0])
	}
	return false
}

// value is the part of a match that is the secret: the group that the rule
// names, or the first that is not empty, or everything.
func (r *rule) value(loc []int) (start, end int) {
	if r.group > 0 && 2*r.group+1 < len(loc) && loc[2*r.group] >= 0 {
		return loc[2*r.group], loc[2*r.group+1]
	}
	for i := 2; r.group == 0 && i+1 < len(loc); i += 2 {
		if loc[i] >= 0 && loc[i+1] > loc[i] {
			return loc[i], loc[i+1]
		}
	}
	return loc[0], loc[1]
}

// widened lets any character stand beside a value that cannot be part of it,
// where default rules list a few: "(token)" is a token too.
func widened(re *syntax.Regexp) *syntax.Regexp {
	n := len(re.Sub)
	if re.Op != syntax.OpConcat || n < 2 {
		return re
	}
	out := *re
	out.Sub = slices.Clone(re.Sub)
	if isEdge(re.Sub[0]) {
		out.Sub[0] = anyBegin()
	}
	if isEdge(re.Sub[n-1]) {
		out.Sub[n-1] = anyEnd()
	}
	return &out
}

var (
	anyBegin = sync.OnceValue(func() *syntax.Regexp { return last(`x(?:[^\w.~-]|^)`) })
	anyEnd   = sync.OnceValue(func() *syntax.Regexp { return last(`x(?:[^\w-]|$)`) })
)

const (
	maxLeads    = 24 // literals an expression may begin with
	maxLeadSize = 16 // bytes of them that are looked at
	minLeadSize = 2
)

// lead returns literals, one of which begins every match of the expression
// once its optional beginning is cut off, and the expression without that
// beginning; nil where there are none. Letters are in lower case: the literals
// are looked for without regard to case.
func lead(re *syntax.Regexp) (rest *syntax.Regexp, literals []string) {
	rest = behead(re)
	set, _ := begins(rest)
	for _, l := range set {
		if len(l) < minLeadSize {
			return nil, nil
		}
	}
	return rest, set
}

// behead drops what may be absent from the front of a concatenation. Captures
// stay, as their numbers count.
func behead(re *syntax.Regexp) *syntax.Regexp {
	if re.Op != syntax.OpConcat {
		return re
	}
	subs := re.Sub
	for len(subs) > 1 && optional(subs[0]) && subs[0].MaxCap() == 0 {
		subs = subs[1:]
	}
	out := *re
	out.Sub = subs
	if len(subs) > 0 && subs[0].Op == syntax.OpConcat {
		head := behead(subs[0])
		out.Sub = append([]*syntax.Regexp{head}, subs[1:]...)
	}
	return &out
}

func optional(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpRepeat:
		return re.Min == 0
	}
	return false
}

// begins returns the literals that a match begins with; whole tells that each
// of them is a match by itself. nil means anything.
func begins(re *syntax.Regexp) (set []string, whole bool) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpNoWordBoundary,
		syntax.OpBeginLine, syntax.OpBeginText:
		return []string{""}, true
	case syntax.OpLiteral:
		for i, r := range re.Rune {
			if r >= 0x80 {
				return []string{strings.ToLower(string(re.Rune[:i]))}, false
			}
		}
		return []string{strings.ToLower(string(re.Rune))}, true
	case syntax.OpCharClass:
		return members(re.Rune)
	case syntax.OpCapture:
		return begins(re.Sub[0])
	case syntax.OpPlus:
		set, _ = begins(re.Sub[0])
		return set, false
	case syntax.OpRepeat:
		if re.Min == 0 {
			return nil, false
		}
		set, whole = begins(re.Sub[0])
		return set, whole && re.Min == 1 && re.Max == 1
	case syntax.OpQuest:
		if set, whole = begins(re.Sub[0]); set == nil || !whole {
			return nil, false
		}
		return append(set, ""), true
	case syntax.OpAlternate:
		return beginsOneOf(re.Sub)
	case syntax.OpConcat:
		return beginsWithAll(re.Sub)
	}
	return nil, false
}

// beginsOneOf is begins for alternatives.
func beginsOneOf(subs []*syntax.Regexp) (set []string, whole bool) {
	whole = true
	for _, sub := range subs {
		more, complete := begins(sub)
		if more == nil || len(set)+len(more) > maxLeads {
			return nil, false
		}
		set, whole = append(set, more...), whole && complete
	}
	return set, whole
}

// beginsWithAll is begins for what follows each other.
func beginsWithAll(subs []*syntax.Regexp) (set []string, whole bool) {
	set = []string{""}
	for _, sub := range subs {
		tails, whole := begins(sub)
		if tails == nil || len(set)*len(tails) > maxLeads {
			return set, false
		}
		var longer []string
		for _, head := range set {
			for _, tail := range tails {
				longer = append(longer, head+tail)
			}
		}
		if set = longer; !whole || len(set[0]) >= maxLeadSize {
			return set, false
		}
	}
	return set, true
}

// members lists a character class of a few ASCII characters.
func members(ranges []rune) ([]string, bool) {
	seen := map[string]bool{}
	var set []string
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			s := strings.ToLower(string(r))
			// The Kelvin sign and the long s are no concern of a credential.
			if (r >= 0x80 && r != '\u212a' && r != '\u017f') || len(set) > 4 {
				return nil, false
			}
			if r < 0x80 && !seen[s] {
				seen[s], set = true, append(set, s)
			}
		}
	}
	return set, len(set) > 0
}

// A matcher is one expression in the forms in which it is run; each is made
// when first needed.
type matcher struct {
	loosened bool
	prog     func() *syntax.Prog   // for an automaton
	search   func() *syntax.Prog   // the same, anywhere in a text
	here     func() *regexp.Regexp // at the start of a text
	after    func() *regexp.Regexp // after one rune, so that boundaries hold
	anywhere func() *regexp.Regexp
}

func newMatcher(tree *syntax.Regexp, loosened bool) matcher {
	final := sync.OnceValue(func() *syntax.Regexp {
		if loosened {
			return loosen(tree)
		}
		return tree
	})
	compiled := func(before string) func() *regexp.Regexp {
		return sync.OnceValue(func() *regexp.Regexp {
			return regexp.MustCompile(before + `(?:` + final().String() + `)`)
		})
	}
	return matcher{
		loosened: loosened,
		prog:     sync.OnceValue(func() *syntax.Prog { return program(final()) }),
		search: sync.OnceValue(func() *syntax.Prog {
			return program(&syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{anything(), final()}})
		}),
		here:     compiled(`\A`),
		after:    compiled(`\A(?s:.)`),
		anywhere: compiled(``),
	}
}

// anything is what may stand before a match.
var anything = sync.OnceValue(func() *syntax.Regexp { return last(`x(?s:.*?)`) })

func program(tree *syntax.Regexp) *syntax.Prog {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		panic("secret: " + err.Error())
	}
	return prog
}

// match returns the submatches of the match that begins at start, nil where
// there is none. Nothing from end on is read.
func (m *matcher) match(text []byte, start, end int) []int {
	if start == 0 {
		return m.here().FindSubmatchIndex(text[:end])
	}
	_, size := utf8.DecodeLastRune(text[:start])
	loc := m.after().FindSubmatchIndex(text[start-size : end])
	if loc == nil {
		return nil
	}
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += start - size
		}
	}
	loc[0] = start
	return loc
}

// loosen returns the expression without what it asks of its surroundings: word
// boundaries, and the delimiters that most default rules begin or end with.
// Where lines are joined, a secret has other neighbours than it had.
func loosen(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpWordBoundary {
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	out := *re
	out.Sub = nil
	for i, sub := range re.Sub {
		edge := re.Op == syntax.OpConcat && (i == 0 || i == len(re.Sub)-1)
		if edge && len(re.Sub) > 1 && isEdge(sub) {
			continue
		}
		out.Sub = append(out.Sub, loosen(sub))
	}
	return &out
}

// isEdge reports whether an expression is a choice between the edge of the text
// and something else.
func isEdge(re *syntax.Regexp) bool {
	if re.Op != syntax.OpAlternate || re.MaxCap() > 0 {
		return false
	}
	return slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool {
		return sub.Op == syntax.OpBeginText || sub.Op == syntax.OpEndText
	})
}

// last is the last part of a concatenation, as package syntax reads it.
func last(expr string) *syntax.Regexp {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic("secret: " + err.Error())
	}
	return re.Sub[len(re.Sub)-1]
}
