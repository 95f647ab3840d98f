// Package ignore says which files Git ignores (gitignore(5)).
package ignore

import (
	"bytes"
	"strings"
)

// A List is the patterns of one file, in order. The zero value ignores nothing.
type List struct {
	patterns []pattern
}

// A pattern is one line.
type pattern struct {
	text    []byte
	literal int  // how many bytes at the beginning stand for themselves
	suffix  bool // it is "*" and then only what stands for itself
	negated bool // "!": what it matches is not ignored
	dirOnly bool // it ends in "/"
	base    bool // it has no other slash: it is about the last component alone
}

// Parse reads a file of patterns. Git takes no line as an error.
func Parse(data []byte) List {
	var l List
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if p, ok := parse(line); ok {
			l.patterns = append(l.patterns, p)
		}
	}
	return l
}

func parse(line []byte) (p pattern, ok bool) {
	if len(line) == 0 || line[0] == '#' {
		return p, false
	}
	line = trimSpaces(line)
	if p.negated = len(line) > 0 && line[0] == '!'; p.negated {
		line = line[1:]
	}
	p.read(line)
	return p, true
}

// One returns the list of one pattern, which is all of the text: that of a line of
// gitattributes(5).
func One(text []byte) List {
	var p pattern
	p.read(text)
	return List{[]pattern{p}}
}

func (p *pattern) read(line []byte) {
	if p.dirOnly = bytes.HasSuffix(line, []byte("/")); p.dirOnly {
		line = line[:len(line)-1]
	}
	p.base = bytes.IndexByte(line, '/') < 0
	line = bytes.TrimPrefix(line, []byte("/"))
	p.text = bytes.Clone(line)
	p.literal = literal(p.text)
	p.suffix = len(line) > 1 && line[0] == '*' && literal(p.text[1:]) == len(p.text)-1
}

// literal is how many bytes at the beginning of a pattern stand for themselves.
func literal(text []byte) int {
	if i := bytes.IndexAny(text, `*?[\`); i >= 0 {
		return i
	}
	return len(text)
}

// trimSpaces removes the spaces at the end, but for those behind a backslash.
func trimSpaces(line []byte) []byte {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
			if i >= len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

// Match reports what the last pattern that matches says of a path: whether it
// is ignored, and with found whether any says something. name is relative to
// the directory that the list is about.
func (l List) Match(name string, dir, fold bool) (ignored, found bool) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	for i := len(l.patterns) - 1; i >= 0; i-- {
		p := &l.patterns[i]
		if p.dirOnly && !dir {
			continue
		}
		text := name
		if p.base {
			text = base
		}
		if p.matches(text, fold) {
			return !p.negated, true
		}
	}
	return false, false
}

// Empty reports whether the list has no patterns.
func (l List) Empty() bool { return len(l.patterns) == 0 }

func (p *pattern) matches(text string, fold bool) bool {
	switch {
	case p.literal == len(p.text):
		return len(text) == len(p.text) && equal(text, p.text, fold)
	case p.base && p.suffix:
		rest := p.text[1:]
		return len(text) >= len(rest) && equal(text[len(text)-len(rest):], rest, fold)
	case len(text) < p.literal || !equal(text[:p.literal], p.text[:p.literal], fold):
		return false
	}
	if p.base {
		return match(p.text, []byte(text), fold)
	}
	return match(p.text[p.literal:], []byte(text[p.literal:]), fold)
}

// equal compares two texts of one length.
func equal(a string, b []byte, fold bool) bool {
	if !fold {
		return a == string(b)
	}
	for i := range len(a) {
		if lower(a[i], true) != lower(b[i], true) {
			return false
		}
	}
	return true
}

// match reports whether a pattern matches a whole text, as gitignore(5) has it:
// "*" and "?" match no slash, "**" between slashes any number of directories,
// and a bracket one byte, a slash never.
func match(pattern, text []byte, fold bool) bool {
	return wild(pattern, text, fold) == yes
}

// What wild returns: a match, none, or none whatever an earlier "*" takes.
type outcome int

const (
	no outcome = iota
	yes
	abort         // the text ended first
	abortToDeeper // likewise, unless an earlier "**" takes more
)

// wild is the usual backtracking match, which gives up as soon as no other
// length of an earlier star can help, so that many stars stay cheap.
func wild(p, t []byte, fold bool) outcome {
	start := true // at the beginning of the pattern or after a slash of it
	for ; len(p) > 0; p = p[1:] {
		if len(t) == 0 && p[0] != '*' {
			return abort
		}
		switch p[0] {
		case '?':
			if t[0] == '/' {
				return no
			}
		case '*':
			return star(p, t, start, fold)
		case '[':
			n, ok := bracket(p, lower(t[0], fold), fold)
			if n == 0 {
				return abort
			}
			if !ok || t[0] == '/' {
				return no
			}
			p = p[n-1:]
		case '\\':
			if p = p[1:]; len(p) == 0 {
				return abort
			}
			fallthrough
		default:
			if lower(p[0], fold) != lower(t[0], fold) {
				return no
			}
		}
		start = p[0] == '/'
		t = t[1:]
	}
	if len(t) > 0 {
		return no
	}
	return yes
}

func star(p, t []byte, start, fold bool) outcome {
	rest := bytes.TrimLeft(p, "*")
	deep := false
	if len(p)-len(rest) > 1 && start && (len(rest) == 0 || rest[0] == '/' || rest[0] == '\\' && len(rest) > 1 && rest[1] == '/') {
		if len(rest) > 0 && rest[0] == '/' && wild(rest[1:], t, fold) == yes {
			return yes // "**/" may stand for nothing
		}
		deep = true
	}
	if len(rest) == 0 {
		if !deep && bytes.IndexByte(t, '/') >= 0 {
			return abortToDeeper
		}
		return yes
	}
	if !deep && rest[0] == '/' {
		slash := bytes.IndexByte(t, '/')
		if slash < 0 {
			return abort
		}
		return wild(rest, t[slash:], fold)
	}
	for ; len(t) > 0; t = t[1:] {
		switch o := wild(rest, t, fold); {
		case o == no, deep && o == abortToDeeper:
		default:
			return o
		}
		if !deep && t[0] == '/' {
			return abortToDeeper
		}
	}
	return abort
}

// bracket matches one byte with a bracket expression, and says how long that
// is; 0 where it does not end.
func bracket(p []byte, c byte, fold bool) (size int, ok bool) {
	i := 1
	negated := len(p) > 1 && (p[1] == '!' || p[1] == '^')
	if negated {
		i++
	}
	last := -1 // the byte that a range may begin with
	for first := true; ; first = false {
		if i >= len(p) {
			return 0, false
		}
		switch b := p[i]; {
		case b == ']' && !first:
			return i + 1, ok != negated
		case b == '[' && i+1 < len(p) && p[i+1] == ':':
			end := bytes.IndexByte(p[i+2:], ']')
			if end < 0 {
				return 0, false
			}
			class := p[i+2 : i+2+end]
			if !bytes.HasSuffix(class, []byte(":")) { // "[:" that is no class is two characters
				ok = ok || same(c, '[', fold)
				last = '['
				break
			}
			in, known := inClass(string(class[:len(class)-1]), c, fold)
			if !known {
				return 0, false
			}
			ok, last = ok || in, -1
			i += 2 + end
		case b == '-' && last >= 0 && i+1 < len(p) && p[i+1] != ']':
			if i++; p[i] == '\\' {
				if i++; i >= len(p) {
					return 0, false
				}
			}
			low, high := byte(last), p[i]
			ok = ok || low <= c && c <= high
			if up := upper(c); fold && up != c {
				ok = ok || low <= up && up <= high
			}
			last = -1
		default:
			if b == '\\' {
				if i++; i >= len(p) {
					return 0, false
				}
				b = p[i]
			}
			ok, last = ok || same(c, b, fold), int(b)
		}
		i++
	}
}

func inClass(name string, c byte, fold bool) (in, known bool) {
	low, up := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z'
	digit := '0' <= c && c <= '9'
	graph := c > ' ' && c < 0x7f
	switch name {
	case "alnum":
		return low || up || digit, true
	case "alpha":
		return low || up, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return low || fold && up, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !low && !up && !digit, true
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r', true
	case "upper":
		return up || fold && low, true
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F', true
	}
	return false, false
}

func same(a, b byte, fold bool) bool { return lower(a, fold) == lower(b, fold) }

func lower(c byte, fold bool) byte {
	if fold && 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}
