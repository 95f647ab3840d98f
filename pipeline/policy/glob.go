package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
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
// fold); a ? is a character, not a byte; there is no negation, no comment and
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

const mostGlob = 256 // characters

// ParseGlob reads a Glob. The error says what is wrong, not where it stood.
func ParseGlob(s string) (Glob, error) {
	if err := checkGlob(s); err != nil {
		return Glob{}, err
	}
	return parseGlob(s, false)
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
	for i, name := range names {
		p, err := parsePart(name, exact)
		if err != nil {
			return Glob{}, fmt.Errorf("glob %q: %w", shorten(s), err)
		}
		g.parts = append(g.parts, p)
		if p.deep && i == len(names)-1 {
			g.parts = append(g.parts, part{tokens: []globToken{{star: true}}}) // at least one
		}
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

func parsePart(name string, exact bool) (part, error) {
	switch name {
	case "":
		return part{}, errors.New("has an empty component")
	case ".", "..":
		return part{}, fmt.Errorf("%q is no name in a path of a tree", name)
	case "**":
		return part{deep: true}, nil
	}
	tokens, err := parseTokens(name, exact)
	return part{tokens: tokens}, err
}

// Match reports whether the glob is about a path, relative and with slashes: it
// matches the path or a directory that the path is in.
func (g Glob) Match(path string) bool {
	if !g.exact {
		path = fold(path)
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
