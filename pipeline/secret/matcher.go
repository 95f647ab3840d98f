package secret

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
	"unicode/utf8"
)

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
