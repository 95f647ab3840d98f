package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A reader turns nodes into values and collects what is wrong on the way.
type reader struct {
	file     string
	joined   bool // what is read may be two files joined
	problems Problems
}

func (r *reader) problem(m mark, key, message string, allowed ...string) {
	r.problems = append(r.problems, Problem{
		File: r.file, Line: m.line, Column: m.column, Key: key, Message: message, Allowed: allowed,
	})
}

// A read takes a node for the value of a key.
type read func(r *reader, n node, key string)

// A field is a key of a mapping and what reads its value.
type field struct {
	name string
	read read
}

// is refuses a node of another kind.
func (r *reader) is(n node, key string, want ...kind) bool {
	if slices.Contains(want, n.kind) {
		return true
	}
	words := make([]string, len(want))
	for i, k := range want {
		words[i] = string(k)
	}
	message := "is " + string(n.kind) + ", not " + strings.Join(words, " or ")
	if slices.Contains(want, isText) && (n.kind == isInteger || n.kind == isBool) {
		message += "; as text it needs quotes"
	}
	r.problem(n.mark, key, message)
	return false
}

// mapping reads the values of a mapping whose keys are those of fields.
func (r *reader) mapping(n node, key string, fields ...field) bool {
	if !r.is(n, key, isMapping) {
		return false
	}
	seen := map[string]mark{}
	for i, k := range n.keys {
		name := join(key, k.text)
		f := slices.IndexFunc(fields, func(f field) bool { return f.name == k.text })
		first, twice := seen[k.text]
		switch {
		case k.kind != isText || f < 0:
			r.problem(k.mark, key, fmt.Sprintf("unknown key %q", shorten(k.text)), names(fields)...)
		case twice:
			r.problem(k.mark, name, fmt.Sprintf("stands twice; first on line %d", first.line))
		default:
			seen[k.text] = k.mark
			fields[f].read(r, n.values[i], name)
		}
	}
	return true
}

func names(fields []field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return out
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// shorten keeps an error readable that tells what somebody wrote.
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= 60 {
		return s
	}
	return string([]rune(s)[:60]) + "…"
}

// list reads each value of a sequence.
func list(each read) read {
	return func(r *reader, n node, key string) {
		if !r.is(n, key, isSequence) {
			return
		}
		for i, v := range n.values {
			each(r, v, fmt.Sprintf("%s[%d]", key, i))
		}
	}
}
