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
	if p.dirOnly = bytes.HasSuffix(line, []byte("/")); p.dirOnly {
		line = line[:len(line)-1]
	}
	p.base = bytes.IndexByte(line, '/') < 0
	line = bytes.TrimPrefix(line, []byte("/"))
	p.text = bytes.Clone(line)
	p.literal = literal(p.text)
	p.suffix = len(line) > 1 && line[0] == '*' && literal(p.text[1:]) == len(p.text)-1
	return p, true
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
