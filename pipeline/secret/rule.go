package secret

import (
	"fmt"
	"regexp"
	"regexp/syntax"
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

// generic rules describe what stands beside a value more than the value.
// Across joined lines they would take in what follows any short one.
var generic = map[string]bool{
	"generic-api-key": true, "hashicorp-tf-password": true, "kubernetes-secret-yaml": true,
	"curl-auth-header": true, "curl-auth-user": true, "nuget-config-password": true, "jwt-base64": true,
	"sourcegraph-access-token": true, "random-value": true, "hexadecimal-secret": true, "docker-config-auth": true,
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

// kindOf keeps of a rule's id what a marker may show.
func kindOf(id string) string {
	var b []byte
	for i := range len(id) {
		c := lower(id[i])
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b = append(b, c)
		case len(b) > 0 && b[len(b)-1] != '-':
			b = append(b, '-')
		}
	}
	b = b[:min(len(b), 64)]
	for len(b) > 0 && b[len(b)-1] == '-' {
		b = b[:len(b)-1]
	}
	return string(b)
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
