// Package attributes says what the files of a commit look like when Git checks
// them out, and what Git makes of a file when it compares or adds it: line
// endings, $Id$ and encodings, as gitattributes(5) and the configuration have
// them. It runs nothing and reads no file by itself: the programs of filters are run by
// who calls.
//
// The order is Git's. Checking out: $Id$, line endings, encoding, filter. Adding: the
// same backwards.
package attributes

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/gitstore/ignore"
)

// File is the name of the files that attributes are in.
const File = ".gitattributes"

// A Config is what Git's configuration says of the files of a working tree. The
// zero value changes nothing of a file.
type Config struct {
	AutoCRLF   string // core.autocrlf, in lower case: "true", "input", or neither
	EOL        string // core.eol, in lower case
	NativeCRLF bool   // lines end in CRLF on this system
	IgnoreCase bool   // core.ignoreCase

	User []byte // the system's attributes and, after them, the user's (core.attributesFile)
	Info []byte // $GIT_DIR/info/attributes, which go before all others

	// Filters are the filters that the configuration names a program for. Run runs one on
	// the file at a path; nil where none may be run.
	Filters map[string]Filter
	Run     func(command, path string, in []byte) ([]byte, error)
}

// A Filter is a driver of the attribute "filter": what a shell runs when a file is added
// and when it is checked out, "" for nothing.
type Filter struct {
	Clean, Smudge string
	Required      bool   // nothing is not enough
	Refused       string // why it is not run, "" where it may be
}

// Rules are the attributes of one tree. Several goroutines may use them.
type Rules struct {
	config Config
	read   func(name string) ([]byte, error)
	info   list
	user   list

	mu     sync.Mutex
	dirs   map[string][]list // by directory: its lists, the nearest first
	macros map[string][]setting
}

// Rules returns the attributes of a tree, of which read returns a file, nil where
// there is none.
func (c Config) Rules(read func(name string) ([]byte, error)) (*Rules, error) {
	r := &Rules{config: c, read: read, dirs: map[string][]list{}, macros: map[string][]setting{}}
	for _, name := range []string{"-diff", "-merge", "-text"} {
		r.macros["binary"] = append(r.macros["binary"], parseSetting(name))
	}
	r.user, r.info = parse(c.User), parse(c.Info)
	root, err := r.dir(".")
	if err != nil {
		return nil, err
	}
	r.define(r.user)
	r.define(root[0])
	r.define(r.info)
	return r, nil
}

// define takes up the macros of a list, which go before those that are there.
func (r *Rules) define(l list) {
	for _, line := range l {
		if line.macro != "" {
			r.macros[line.macro] = line.settings
		}
	}
}

// dir returns the lists of a directory and of those above.
func (r *Rules) dir(name string) ([]list, error) {
	if lists, known := r.dirs[name]; known {
		return lists, nil
	}
	data, err := r.read(path.Join(name, File))
	if err != nil {
		return nil, err
	}
	lists := []list{parse(data)}
	if name != "." {
		above, err := r.dir(path.Dir(name))
		if err != nil {
			return nil, err
		}
		lists = append(lists, above...)
	}
	r.dirs[name] = lists
	return lists, nil
}

// of returns what is said of a path: by attribute, "true", "false" or its value;
// what is unspecified is missing or "".
func (r *Rules) of(name string) (map[string]string, error) {
	r.mu.Lock()
	lists, err := r.dir(path.Dir(name))
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	r.ask(r.info, name, said)
	dir := path.Dir(name)
	for _, l := range lists {
		r.ask(l, strings.TrimPrefix(name, strings.TrimPrefix(dir+"/", "./")), said)
		dir = path.Dir(dir)
	}
	r.ask(r.user, name, said)
	return said, nil
}

// ask adds what a list says and those asked before have not.
func (r *Rules) ask(l list, name string, said map[string]string) {
	for _, line := range slices.Backward(l) {
		if line.macro != "" {
			continue
		}
		if matches, _ := line.pattern.Match(name, false, r.config.IgnoreCase); matches {
			r.fill(line.settings, said)
		}
	}
}

func (r *Rules) fill(settings []setting, said map[string]string) {
	for _, s := range slices.Backward(settings) {
		if _, known := said[s.name]; known {
			continue
		}
		said[s.name] = s.value
		if s.value == "true" {
			r.fill(r.macros[s.name], said)
		}
	}
}

// A list is the lines of one file, in order.
type list []line

type line struct {
	pattern  ignore.List
	macro    string // "" where the line is about paths
	settings []setting
}

// A setting is one attribute: "true", "false", a value, or "" for unspecified.
type setting struct{ name, value string }

// What Git reads at most, which passes over what is longer.
const (
	maxFile = 100 << 20
	maxLine = 2048
)

// parse reads a file. A line that Git cannot read it passes over.
func parse(data []byte) (out list) {
	if len(data) > maxFile {
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for text := range bytes.Lines(data) {
		text = bytes.TrimSuffix(text, []byte("\n"))
		if len(text) >= maxLine {
			continue
		}
		if l, ok := parseLine(strings.TrimLeft(string(text), blank)); ok {
			out = append(out, l)
		}
	}
	return out
}

const blank = " \t\r\n"

func parseLine(text string) (l line, ok bool) {
	if text == "" || text[0] == '#' {
		return l, false
	}
	pattern, rest, quoted := text, "", false
	if text[0] == '"' {
		pattern, rest, quoted = unquote(text)
	}
	if i := strings.IndexAny(text, blank); !quoted && i >= 0 {
		pattern, rest = text[:i], text[i:]
	}
	name, isMacro := strings.CutPrefix(pattern, "[attr]")
	switch {
	case isMacro && name != "" && !quoted:
		if !validName(name) {
			return l, false
		}
		l.macro = name
	case pattern == "" || pattern[0] == '!': // Git forbids negative patterns
		return l, false
	default:
		l.pattern = ignore.One([]byte(pattern))
	}
	for _, word := range strings.FieldsFunc(rest, func(c rune) bool { return strings.ContainsRune(blank, c) }) {
		s := parseSetting(word)
		if !validName(s.name) {
			return l, false
		}
		l.settings = append(l.settings, s)
	}
	return l, true
}

func parseSetting(word string) setting {
	name, value, valued := strings.Cut(word, "=")
	switch {
	case strings.HasPrefix(name, "-"):
		return setting{name[1:], "false"}
	case strings.HasPrefix(name, "!"):
		return setting{name[1:], ""}
	case !valued:
		return setting{name, "true"}
	}
	return setting{name, "=" + value}
}

// validName follows Git: letters, digits, "-", "." and "_", not "-" first; what
// begins with "builtin_" is Git's own.
func validName(name string) bool {
	if name == "" || name[0] == '-' || strings.HasPrefix(name, "builtin_") {
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_')
	})
}

// unquote reads a pattern in C-style quotes. One that does not end is none.
func unquote(text string) (pattern, rest string, ok bool) {
	escapes := map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '"': '"'}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			return b.String(), text[i+1:], true
		case c != '\\':
			b.WriteByte(c)
			continue
		}
		if i++; i == len(text) {
			break
		}
		if plain, ok := escapes[text[i]]; ok {
			b.WriteByte(plain)
			continue
		}
		if i+2 >= len(text) || text[i] < '0' || text[i] > '3' || text[i+1] < '0' || text[i+1] > '7' || text[i+2] < '0' || text[i+2] > '7' {
			break
		}
		b.WriteByte((text[i]-'0')<<6 | (text[i+1]-'0')<<3 | (text[i+2] - '0'))
		i += 2
	}
	return text, "", false
}
