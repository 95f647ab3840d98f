package secret

import (
	"regexp/syntax"
	"strings"
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
		return literal(re.Rune)
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
		return maybe(re.Sub[0])
	case syntax.OpAlternate:
		return either(re.Sub)
	case syntax.OpConcat:
		return sequence(re.Sub)
	}
	return nil, false
}

func literal(runes []rune) ([]string, bool) {
	for i, r := range runes {
		if r >= 0x80 {
			return []string{strings.ToLower(string(runes[:i]))}, false
		}
	}
	return []string{strings.ToLower(string(runes))}, true
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

func maybe(re *syntax.Regexp) ([]string, bool) {
	set, whole := begins(re)
	if set == nil || !whole {
		return nil, false
	}
	return append(set, ""), true
}

func either(subs []*syntax.Regexp) ([]string, bool) {
	var all []string
	complete := true
	for _, sub := range subs {
		set, whole := begins(sub)
		if set == nil || len(all)+len(set) > maxLeads {
			return nil, false
		}
		all, complete = append(all, set...), complete && whole
	}
	return all, complete
}

func sequence(subs []*syntax.Regexp) ([]string, bool) {
	all := []string{""}
	for _, sub := range subs {
		set, whole := begins(sub)
		if set == nil || len(all)*len(set) > maxLeads {
			return all, false
		}
		all = product(all, set)
		if !whole || len(all[0]) >= maxLeadSize {
			return all, false
		}
	}
	return all, true
}

func product(heads, tails []string) []string {
	var all []string
	for _, h := range heads {
		for _, t := range tails {
			all = append(all, h+t)
		}
	}
	return all
}
