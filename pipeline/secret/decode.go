package secret

import (
	"bytes"
	"unicode/utf8"
)

const (
	maxDepth = 3  // encodings within encodings
	minText  = 8  // bytes of text that decoding must yield to be looked at
	minRun   = 11 // base64 digits that stand for minText bytes
)

// digits gives every base64 digit's value, in the standard alphabet and in
// that for URLs at once; 64 for other bytes.
var digits = func() (t [256]byte) {
	for i := range t {
		t[i] = 64
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}()

// nibbles gives every hexadecimal digit's value; 16 for other bytes.
var nibbles = func() (t [256]byte) {
	for i := range t {
		t[i] = 16
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

// decoded reads v with its runs of base64 and hexadecimal digits decoded, at
// every alignment, as a run may begin with digits that do not belong to it.
// Each piece stands for its whole run. Runs that do not cross a joint are left
// out of a joined view: they are in the view that was joined.
func (w *work) decoded(v *view) *view {
	out := &view{parent: v, depth: v.depth + 1}
	var buffer []byte
	for at := 0; at < len(v.text); {
		if digits[v.text[at]] == 64 {
			at++
			continue
		}
		end, hex := run(v.text, at)
		if end-at >= minRun && v.crosses(at, end) {
			if !w.spend(&w.bytes, 4*(end-at)) {
				w.unscanned(v, at, end)
			} else {
				buffer = out.run(v.text[at:end], at, padded(v.text, end), hex, buffer)
			}
		}
		at = end
	}
	return out
}

// crosses reports whether a joined view brought text[lo:hi] together.
func (v *view) crosses(lo, hi int) bool {
	if v.joints == nil {
		return true
	}
	any, _ := v.spans(lo, hi)
	return any
}

// run returns the end of the digits that begin at start, and whether a
// sufficient part of them is hexadecimal.
func run(text []byte, start int) (end int, hex bool) {
	longest, begin := 0, start
	for end = start; end < len(text) && digits[text[end]] < 64; end++ {
		if nibbles[text[end]] == 16 {
			begin = end + 1
		}
		longest = max(longest, end+1-begin)
	}
	return end, longest >= 2*minText
}

// padded returns the end of a run with its padding.
func padded(text []byte, end int) int {
	for n := 0; n < 2 && end < len(text) && text[end] == '='; n++ {
		end++
	}
	return end
}

// run adds what the digits decode to, which stands for [from, to).
func (v *view) run(digits []byte, from, to int, hex bool, buffer []byte) []byte {
	for align := range 4 {
		if len(digits)-align < minRun {
			break
		}
		buffer = base64(buffer[:0], digits[align:])
		v.texts(buffer, from, to)
	}
	for at := 0; hex && at < len(digits); at++ {
		end := at
		for end < len(digits) && nibbles[digits[end]] < 16 {
			end++
		}
		for align := range 2 {
			if end-at >= 2*minText {
				buffer = hexadecimal(buffer[:0], digits[at+align:end])
				v.texts(buffer, from+at, from+end)
			}
		}
		at = end
	}
	return buffer
}

func base64(out, text []byte) []byte {
	for len(text) >= 4 {
		n := uint32(digits[text[0]])<<18 | uint32(digits[text[1]])<<12 | uint32(digits[text[2]])<<6 | uint32(digits[text[3]])
		out, text = append(out, byte(n>>16), byte(n>>8), byte(n)), text[4:]
	}
	if len(text) >= 2 {
		out = append(out, digits[text[0]]<<2|digits[text[1]]>>4)
	}
	if len(text) == 3 {
		out = append(out, digits[text[1]]<<4|digits[text[2]]>>2)
	}
	return out
}

func hexadecimal(out, text []byte) []byte {
	for ; len(text) >= 2; text = text[2:] {
		out = append(out, nibbles[text[0]]<<4|nibbles[text[1]])
	}
	return out
}

// texts adds those parts of decoded bytes that can be text: a wrong alignment
// yields none.
func (v *view) texts(data []byte, from, to int) {
	for at := 0; at < len(data); {
		n := textual(data[at:])
		if n >= minText {
			v.stands(data[at:at+n], from, to)
			v.gap()
		}
		at += n + 1
	}
}

// textual is the length of data's beginning that is text in UTF-8 or UTF-16.
func textual(data []byte) int {
	at := 0
	for at < len(data) {
		if inText[data[at]] {
			at++
			continue
		}
		r, n := utf8.DecodeRune(data[at:])
		if n < 2 || r == utf8.RuneError {
			break
		}
		at += n
	}
	return at
}

// inText are the bytes that by themselves are part of a text: printable, white
// space, and NUL for UTF-16.
var inText = func() (t [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		t[c] = true
	}
	t['\n'], t['\r'], t['\t'], t[0] = true, true, true, true
	return t
}()

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
			out.stands([]byte(value), at, at+n)
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

// escape returns what the escape that text begins with stands for, and its
// length; 0 if it begins with none.
func escape(text []byte) (value string, size int) {
	switch {
	case text[0] == '+':
		return " ", 1
	case text[0] == '%':
		return escapedByte(text, 1)
	case len(text) < 2:
		return "", 0
	case text[1] == 'x':
		return escapedByte(text, 2)
	case text[1] == 'u':
		return escapedRune(text)
	}
	switch text[1] {
	case 'n':
		return "\n", 2
	case 'r':
		return "\r", 2
	case 't':
		return "\t", 2
	case '"', '\'', '\\', '/':
		return string(text[1:2]), 2
	}
	return "", 0
}

func escapedByte(text []byte, at int) (value string, size int) {
	if at+2 > len(text) || nibbles[text[at]] == 16 || nibbles[text[at+1]] == 16 {
		return "", 0
	}
	return string([]byte{nibbles[text[at]]<<4 | nibbles[text[at+1]]}), at + 2
}

func escapedRune(text []byte) (value string, size int) {
	if len(text) < 6 {
		return "", 0
	}
	r := rune(0)
	for _, c := range text[2:6] {
		if nibbles[c] == 16 {
			return "", 0
		}
		r = r<<4 | rune(nibbles[c])
	}
	return string(r), 6
}

// wide reads v where it holds text in UTF-16, of either byte order, in Latin
// letters; nil where it holds no NUL.
func (w *work) wide(v *view) *view {
	if bytes.IndexByte(v.text, 0) < 0 || !w.spend(&w.bytes, len(v.text)) {
		return nil
	}
	out := &view{parent: v, depth: v.depth + 1}
	for at := 0; at+1 < len(v.text); {
		end := at
		for end < len(v.text) && v.text[end] != 0 && (end+1 == len(v.text) || v.text[end+1] == 0) {
			end += 2 // the last letter may lack its second byte: of another order, that is its first
		}
		end = min(end, len(v.text))
		if end-at >= 2*minText {
			out.narrow(v.text[at:end], at)
		}
		at = max(end, at+1)
	}
	return out
}

// narrow adds UTF-16 of Latin letters in UTF-8.
func (v *view) narrow(text []byte, from int) {
	for at := 0; at < len(text); {
		end := at
		for end < len(text) && text[end] < utf8.RuneSelf {
			end += 2
		}
		if at < end {
			v.spaced(text[at:min(end, len(text))], from+at)
		}
		if end < len(text) {
			v.stands(utf8.AppendRune(nil, rune(text[end])), from+end, min(from+end+2, from+len(text)))
			end += 2
		}
		at = end
	}
	v.gap()
}

// spaced adds every second byte.
func (v *view) spaced(text []byte, from int) {
	v.pieces = append(v.pieces, piece{int32(len(v.text)), int32((len(text) + 1) / 2), int32(from), int32(len(text)), 2})
	for i := 0; i < len(text); i += 2 {
		v.text = append(v.text, text[i])
	}
}
