package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A class is what stands in brackets.
type class struct {
	negated bool
	ranges  [][2]rune
	named   []func(rune) bool
}

// named are POSIX's classes, of ASCII as in git (wildmatch.c).
var named = map[string]func(rune) bool{
	"alnum":  func(c rune) bool { return isLetter(c) || isDigit(c) },
	"alpha":  isLetter,
	"blank":  func(c rune) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c rune) bool { return c < ' ' || c == 0x7F },
	"digit":  isDigit,
	"graph":  func(c rune) bool { return '!' <= c && c <= '~' },
	"lower":  isLetter, // as case does not count
	"print":  func(c rune) bool { return ' ' <= c && c <= '~' },
	"punct":  func(c rune) bool { return '!' <= c && c <= '~' && !isLetter(c) && !isDigit(c) },
	"space":  func(c rune) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"upper":  isLetter,
	"xdigit": func(c rune) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isLetter(c rune) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c rune) bool { return '0' <= c && c <= '9' }

// parseClass reads a class after its bracket, up to and with the closing one.
func parseClass(s string) (*class, string, error) {
	set := &class{}
	if s != "" && (s[0] == '!' || s[0] == '^') {
		set.negated, s = true, s[1:]
	}
	for first := true; ; first = false {
		switch {
		case s == "":
			return nil, "", errors.New("a [ without its ], or with a slash before it")
		case s[0] == ']' && !first:
			return set, s[1:], nil
		case strings.HasPrefix(s, "[:"):
			name, rest, ok := strings.Cut(s[2:], ":]")
			if !ok || named[name] == nil {
				return nil, "", fmt.Errorf("unknown class in %q", shorten("["+s))
			}
			set.named, s = append(set.named, named[name]), rest
		default:
			low, rest, err := classChar(s)
			if err != nil {
				return nil, "", err
			}
			high := low
			if len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
				if high, rest, err = classChar(rest[1:]); err != nil {
					return nil, "", err
				}
			}
			if high < low {
				return nil, "", fmt.Errorf("the range %c-%c is empty", low, high)
			}
			set.ranges, s = append(set.ranges, [2]rune{low, high}), rest
		}
	}
}

// classChar reads one character of a class.
func classChar(s string) (rune, string, error) {
	if s[0] == '\\' {
		s = s[1:]
	}
	c, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return 0, "", errors.New("a [ without its ], or with a slash before it")
	}
	return c, s[size:], nil
}

// has reports whether a character, in any case, is in the class.
func (s *class) has(c rune) bool {
	in := s.hasExactly(c)
	for o := unicode.SimpleFold(c); o != c && !in; o = unicode.SimpleFold(o) {
		in = s.hasExactly(o)
	}
	return in != s.negated
}

func (s *class) hasExactly(c rune) bool {
	for _, r := range s.ranges {
		if r[0] <= c && c <= r[1] {
			return true
		}
	}
	for _, is := range s.named {
		if is(c) {
			return true
		}
	}
	return false
}
