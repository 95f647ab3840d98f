package secret

import (
	"regexp/syntax"
	"slices"
	"sync"
)

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

// last is the last part of a concatenation, as package syntax reads it.
func last(expr string) *syntax.Regexp {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic("secret: " + err.Error())
	}
	return re.Sub[len(re.Sub)-1]
}
