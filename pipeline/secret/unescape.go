package secret

import (
	"bytes"
	"unicode/utf8"
)

// unescaped reads those lines of v that hold escapes with the escapes
// replaced: %41, \x41, \u0041, \n and the other short ones, as URLs, JSON and
// most programming languages have them. Where a line also has a plus, it is
// read a second time with spaces in their place, as forms are encoded.
func (w *work) unescaped(v *view) *view {
	out := &view{parent: v, depth: v.depth + 1}
	for at := 0; at < len(v.text); {
		size := bytes.IndexByte(v.text[at:], '\n')
		if size < 0 {
			size = len(v.text) - at
		}
		line := v.text[at : at+size]
		percent := bytes.IndexByte(line, '%') >= 0
		if percent || bytes.IndexByte(line, '\\') >= 0 {
			w.unescape(out, v, at, at+size, false)
		}
		if percent && bytes.IndexByte(line, '+') >= 0 {
			w.unescape(out, v, at, at+size, true)
		}
		at += size + 1
	}
	return out
}

// unescape adds v.text[at:end] to out; with form, plus signs count as escapes.
func (w *work) unescape(out, v *view, at, end int, form bool) {
	text := v.text[:end]
	next := nextEscape(text, at, false)
	if next == end {
		return
	}
	if !w.spend(&w.bytes, end-at) {
		w.unscanned(v, at, end)
		return
	}
	next = nextEscape(text, at, form)
	for at < end {
		out.copied(text[at:next], at)
		if at = next; at < end {
			value, n := escape(text[at:])
			out.stands(value.bytes[:value.size], at, at+n)
			at += n
		}
		next = nextEscape(text, at, form)
	}
	out.gap()
}

// nextEscape returns where the next escape begins, or len(text).
func nextEscape(text []byte, at int, form bool) int {
	for ; at < len(text); at++ {
		if c := text[at]; c == '%' || c == '\\' || form && c == '+' {
			if _, n := escape(text[at:]); n > 0 {
				return at
			}
		}
	}
	return len(text)
}

// A few are the bytes that an escape stands for.
type few struct {
	bytes [utf8.UTFMax]byte
	size  int
}

func one(c byte) few { return few{[utf8.UTFMax]byte{c}, 1} }

// escape returns what the escape that text begins with stands for, and its
// length; 0 if it begins with none.
func escape(text []byte) (value few, size int) {
	switch {
	case text[0] == '+':
		return one(' '), 1
	case text[0] == '%':
		return escapedByte(text, 1)
	case len(text) < 2:
		return few{}, 0
	case text[1] == 'x':
		return escapedByte(text, 2)
	case text[1] == 'u':
		return escapedRune(text)
	}
	return shortEscape(text[1])
}

func shortEscape(c byte) (few, int) {
	switch c {
	case 'n':
		return one('\n'), 2
	case 'r':
		return one('\r'), 2
	case 't':
		return one('\t'), 2
	case '"', '\'', '\\', '/':
		return one(c), 2
	}
	return few{}, 0
}

func escapedByte(text []byte, at int) (few, int) {
	if at+2 > len(text) || nibbles[text[at]] == 16 || nibbles[text[at+1]] == 16 {
		return few{}, 0
	}
	return one(nibbles[text[at]]<<4 | nibbles[text[at+1]]), at + 2
}

func escapedRune(text []byte) (few, int) {
	if len(text) < 6 {
		return few{}, 0
	}
	r := rune(0)
	for _, c := range text[2:6] {
		if nibbles[c] == 16 {
			return few{}, 0
		}
		r = r<<4 | rune(nibbles[c])
	}
	var f few
	f.size = utf8.EncodeRune(f.bytes[:], r)
	return f, 6
}
