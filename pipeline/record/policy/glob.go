package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Glob says which paths a rule is about, in the language of .gitignore:
//
//	*.tf          a file of that form in any directory
//	docs          the file or directory docs anywhere, and all that is in it
//	docs/         the same, but a directory only
//	/docs         docs at the root; so does docs/api, which has a slash inside
//	a/*/b         * is any characters but a slash, ? is one, [a-z] [!a-z] [[:digit:]] one of a class
//	a/**/b        ** between slashes is any number of directories, also none
//	a/**          all that is in a
//	\*            the character itself
//
// It differs from git in five ways. Case and Unicode form do not count (see
// patch.FoldName), so that a file which some clone takes for a protected one is
// protected (T35): Claude.MD, and worKflows with the Kelvin sign for a K; a ? is a character, not a byte; there is no negation, no comment and
// no pattern that silently matches nothing (these are errors).
//
// Match takes time in proportion to the lengths of path and glob, multiplied,
// whatever they are (T42).
type Glob struct {
	parts     []part // one for each component
	directory bool   // ends in a slash
	exact     bool   // case and Unicode form count
	shallow   bool   // does not match what is in a directory that it matches
}

// A part is a component of a glob: **, or tokens.
type part struct {
	deep   bool
	tokens []globToken
}

// A globToken matches one character, or with star any number of them. A class has those of which one,
// in some case, is in ranges; negated, all others.
type globToken struct {
	star, any, class, negated bool
	char                      rune // where it is none of these: folded unless the glob is exact
	ranges                    [][2]rune
}

const mostGlob = 256 // characters

// ParseGlob reads a Glob. The error says what is wrong, not where it stood.
func ParseGlob(s string) (Glob, error) {
	if err := checkGlob(s); err != nil {
		return Glob{}, err
	}
	return parseGlob(s, false)
}

// ParseExactGlob reads a pattern of CODEOWNERS: case and Unicode form count.
func ParseExactGlob(s string) (Glob, error) { return parseGlob(s, true) }

// Shallow is g without what is in a directory that it matches.
func (g Glob) Shallow() Glob {
	g.shallow = true
	return g
}

func parseGlob(s string, exact bool) (Glob, error) {
	g := Glob{exact: exact}
	body, directory := strings.CutSuffix(s, "/")
	g.directory = directory
	body, rooted := strings.CutPrefix(body, "/")
	if !rooted && !strings.Contains(body, "/") {
		g.parts = append(g.parts, part{deep: true})
	}
	names := strings.Split(body, "/")
	if names[len(names)-1] == "**" {
		names = append(names, "*") // at least one
	}
	for _, name := range names {
		var p part
		var err error
		switch name {
		case "":
			err = errors.New("has an empty component")
		case ".", "..":
			err = fmt.Errorf("%q cannot be a name in a tree", name)
		case "**":
			p.deep = true
		default:
			p.tokens, err = parseTokens(name, exact)
		}
		if err != nil {
			return Glob{}, fmt.Errorf("glob %q: %w", shorten(s), err)
		}
		g.parts = append(g.parts, p)
	}
	return g, nil
}

func checkGlob(s string) error {
	switch {
	case s == "":
		return errors.New("the glob is empty")
	case !utf8.ValidString(s):
		return errors.New("the glob is not UTF-8")
	case utf8.RuneCountInString(s) > mostGlob:
		return fmt.Errorf("the glob is longer than %d characters", mostGlob)
	case s[0] == '!':
		return fmt.Errorf(`glob %q: there is no negation; a leading ! of a name is written \! here`, shorten(s))
	case s[0] == '#':
		return fmt.Errorf(`glob %q: there are no comments; a leading # of a name is written \# here`, shorten(s))
	case strings.HasSuffix(s, " "):
		return fmt.Errorf("glob %q: ends in a space", shorten(s))
	}
	return nil
}

// Match reports whether the glob is about a path, relative and with slashes: it
// matches the path or a directory that the path is in.
func (g Glob) Match(path string) bool {
	if !g.exact {
		path = patch.FoldName(path)
	}
	return g.match(strings.Split(path, "/"))
}

// match walks down the names of a path, folded unless the glob is exact, with
// the set of parts that may come next, as a finite automaton does: no backtracking.
func (g Glob) match(names []string) bool {
	next := make([]bool, len(g.parts)+1)
	g.reach(next, 0)
	for i, name := range names {
		after := make([]bool, len(next))
		for k, p := range g.parts {
			switch {
			case !next[k]:
			case p.deep:
				g.reach(after, k)
			case matchName(p.tokens, name):
				g.reach(after, k+1)
			}
		}
		next = after
		if last := i == len(names)-1; next[len(g.parts)] && (!last || !g.directory) && (last || !g.shallow) {
			return true
		}
	}
	return false
}

// reach marks part k, and those after it that are reached because ** may stand
// for nothing.
func (g Glob) reach(set []bool, k int) {
	for ; !set[k]; k++ {
		set[k] = true
		if k == len(g.parts) || !g.parts[k].deep {
			return
		}
	}
}

// parseTokens reads a component of a glob. Plain characters are folded together, as an accent
// joins the letter before.
func parseTokens(name string, exact bool) (out []globToken, err error) {
	plain := ""
	flush := func() {
		if !exact {
			plain = patch.FoldName(plain)
		}
		for _, c := range plain {
			out = append(out, globToken{char: c})
		}
		plain = ""
	}
	for name != "" {
		first, rest := name[0], name[1:]
		if strings.IndexByte("*?[", first) >= 0 {
			flush()
		}
		switch first {
		case '*':
			out, name = append(out, globToken{star: true}), strings.TrimLeft(rest, "*")
		case '?':
			out, name = append(out, globToken{any: true}), rest
		case '[':
			var class globToken
			if class, name, err = parseClass(rest); err != nil {
				return nil, err
			}
			out = append(out, class)
		default:
			if first == '\\' {
				name = rest
			}
			if name == "" {
				return nil, errors.New(`ends in \, or has it before a slash`)
			}
			_, size := utf8.DecodeRuneInString(name)
			plain, name = plain+name[:size], name[size:]
		}
	}
	flush()
	return out, nil
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

func (t globToken) matches(c rune) bool {
	if !t.class {
		return t.any || t.char == c
	}
	in := t.has(c)
	for o := unicode.SimpleFold(c); o != c && !in; o = unicode.SimpleFold(o) {
		in = t.has(o)
	}
	return in != t.negated
}

func (t globToken) has(c rune) bool {
	return slices.ContainsFunc(t.ranges, func(r [2]rune) bool { return r[0] <= c && c <= r[1] })
}

// classes are the ranges of POSIX's, of ASCII as in git (wildmatch.c). Case does not count.
var classes = map[string]string{
	"alnum": "azAZ09", "alpha": "azAZ", "blank": "  \t\t", "cntrl": "\x00\x1F\x7F\x7F", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "  \t\r", "upper": "AZ", "xdigit": "09afAF",
}

// parseClass reads a class after its bracket, up to and with the closing one.
func parseClass(s string) (class globToken, rest string, err error) {
	class.class = true
	if s != "" && (s[0] == '!' || s[0] == '^') {
		class.negated, s = true, s[1:]
	}
	for first := true; ; first = false {
		switch {
		case s == "":
			return class, "", errOpen
		case s[0] == ']' && !first:
			return class, s[1:], nil
		case strings.HasPrefix(s, "[:"):
			name, rest, ok := strings.Cut(s[2:], ":]")
			if !ok || classes[name] == "" {
				return class, "", fmt.Errorf("unknown class in %q", shorten("["+s))
			}
			for r := classes[name]; r != ""; r = r[2:] {
				class.ranges = append(class.ranges, [2]rune{rune(r[0]), rune(r[1])})
			}
			s = rest
		default:
			low, rest, err := classChar(s)
			if err != nil {
				return class, "", err
			}
			high := low
			if len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
				if high, rest, err = classChar(rest[1:]); err != nil {
					return class, "", err
				}
			}
			if high < low {
				return class, "", fmt.Errorf("the range %c-%c is empty", low, high)
			}
			class.ranges, s = append(class.ranges, [2]rune{low, high}), rest
		}
	}
}

var errOpen = errors.New("a [ has no ] in the same component")

// classChar reads one character of a class.
func classChar(s string) (rune, string, error) {
	s = strings.TrimPrefix(s, `\`)
	c, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return 0, "", errOpen
	}
	return c, s[size:], nil
}
