package policy

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// A globToken matches one character, or with star any number of them.
type globToken struct {
	star  bool
	any   bool // ?
	class *class
	char  rune // folded unless the glob is exact, where it is none of the others
}

// parseTokens reads a component of a glob.
func parseTokens(name string, exact bool) ([]globToken, error) {
	var out []globToken
	for name != "" {
		switch name[0] {
		case '*':
			if len(out) == 0 || !out[len(out)-1].star {
				out = append(out, globToken{star: true})
			}
			name = name[1:]
		case '?':
			out, name = append(out, globToken{any: true}), name[1:]
		case '[':
			set, rest, err := parseClass(name[1:])
			if err != nil {
				return nil, err
			}
			out, name = append(out, globToken{class: set}), rest
		default:
			var plain string
			if plain, name = cutPlain(name); plain == "" {
				return nil, errors.New(`ends in \, or has it before a slash`)
			}
			if !exact {
				plain = fold(plain)
			}
			for _, c := range plain {
				out = append(out, globToken{char: c})
			}
		}
	}
	return out, nil
}

// cutPlain takes the characters up to the next special one, without their
// backslashes. They are folded together, as an accent joins the letter before.
func cutPlain(name string) (plain, rest string) {
	var b strings.Builder
	for name != "" && !strings.ContainsRune("*?[", rune(name[0])) {
		if name[0] == '\\' {
			name = name[1:]
			if name == "" {
				return "", ""
			}
		}
		_, size := utf8.DecodeRuneInString(name)
		b.WriteString(name[:size])
		name = name[size:]
	}
	return b.String(), name
}

func (t globToken) matches(c rune) bool {
	switch {
	case t.any:
		return true
	case t.class != nil:
		return t.class.has(c)
	}
	return t.char == c
}

// matchName matches a component. When it fails it goes back to the last star
// only, which then takes one character more: an earlier star could not help.
func matchName(tokens []globToken, name string) bool {
	chars := []rune(name)
	t, star, from := 0, -1, 0
	for i := 0; i < len(chars); {
		switch {
		case t < len(tokens) && tokens[t].star:
			star, from = t, i
			t++
		case t < len(tokens) && tokens[t].matches(chars[i]):
			t, i = t+1, i+1
		case star >= 0:
			from++
			t, i = star+1, from
		default:
			return false
		}
	}
	for t < len(tokens) && tokens[t].star {
		t++
	}
	return t == len(tokens)
}
