package canon

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// A scanner moves over canonical JSON. Its methods return true only where the
// text is surely canonical, and false where it is not or where they do not know
// (a fraction, an escaped key, a lone surrogate): whoever asks then falls back
// on Parse and Marshal. So only a wrong true could be a fault.
type scanner struct {
	data []byte
	pos  int
}

// value moves over any value; depth is how many arrays and objects are around it.
func (s *scanner) value(depth int) bool {
	if s.pos == len(s.data) {
		return false
	}
	switch s.data[s.pos] {
	case '{':
		return depth < MaxDepth && s.object(depth+1)
	case '[':
		return depth < MaxDepth && s.array(depth+1)
	case '"':
		_, ok := s.text()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	_, ok := s.integer()
	return ok
}

func (s *scanner) accept(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

func (s *scanner) array(depth int) bool {
	s.pos++
	if s.accept(']') {
		return true
	}
	for {
		if !s.value(depth) {
			return false
		}
		if s.accept(']') {
			return true
		}
		if !s.accept(',') {
			return false
		}
	}
}

func (s *scanner) object(depth int) bool {
	s.pos++
	if s.accept('}') {
		return true
	}
	var last []byte
	for first := true; ; first = false {
		key, ok := s.key()
		if !ok || !first && bytes.Compare(last, key) >= 0 || !s.value(depth) {
			return false
		}
		last = key
		if s.accept('}') {
			return true
		}
		if !s.accept(',') {
			return false
		}
	}
}

// key moves over a key and its colon. Keys that it returns are in the order of
// Compare when they are in the order of their bytes: none has an escape, or a
// character from U+E000 up, which alone may sort otherwise in UTF-16.
func (s *scanner) key() ([]byte, bool) {
	t, ok := s.text()
	if !ok || t.escaped || t.high || !s.accept(':') {
		return nil, false
	}
	return s.data[t.start:t.end], true
}

// maxDigits is how many digits a number may have so that every integer of that
// length is a double, and its form in ECMAScript is those digits.
const maxDigits = 15

// maxInteger bounds the numbers of maxDigits digits.
const maxInteger = 1e15

// integer moves over an integer of at most maxDigits digits.
func (s *scanner) integer() (int64, bool) {
	negative := s.accept('-')
	start := s.pos
	var n int64
	for ; s.pos < len(s.data) && s.pos-start <= maxDigits; s.pos++ {
		c := s.data[s.pos] - '0'
		if c > 9 {
			break
		}
		n = n*10 + int64(c)
	}
	digits := s.pos - start
	if digits == 0 || digits > maxDigits || s.data[start] == '0' && (digits > 1 || negative) || s.inNumber() {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// inNumber reports whether a fraction or an exponent goes on here.
func (s *scanner) inNumber() bool {
	return s.pos < len(s.data) && (s.data[s.pos] == '.' || s.data[s.pos]|0x20 == 'e')
}

// A span is where a string's text stands between its quotes. high tells that
// the text has a character from U+E000 up.
type span struct {
	start, end    int
	escaped, high bool
}

// text moves over a string.
func (s *scanner) text() (span, bool) {
	if !s.accept('"') {
		return span{}, false
	}
	t := span{start: s.pos}
	for {
		s.pos = plain(s.data, s.pos)
		if s.pos == len(s.data) {
			return t, false
		}
		switch c := s.data[s.pos]; {
		case c == '"':
			t.end = s.pos
			s.pos++
			return t, true
		case c == '\\':
			n := escapeLength(s.data[s.pos:])
			if n == 0 {
				return t, false
			}
			t.escaped = true
			s.pos += n
		case c < 0x20:
			return t, false
		default:
			r, size := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return t, false
			}
			t.high = t.high || r >= 0xE000
			s.pos += size
		}
	}
}

// plain returns where, from i on, the first byte stands that is not ASCII, or
// is a control character, a quote or a backslash; len(data) if there is none.
func plain(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		if m := special(binary.LittleEndian.Uint64(data[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// special sets the top bit of each byte of w that plain looks for. A borrow can
// set more, but only above one that is rightly set, and the lowest counts.
func special(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return (w | (w-ones*0x20)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & tops
}

// escapeLength is the length of the escape that b begins with, if Marshal
// writes it so, else 0. The escapes of lone surrogates are left to Parse.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && isControl(b[2:6]) {
			return 6
		}
	}
	return 0
}

// isControl reports whether b is the lower-case hex of a control character that
// has no shorter escape.
func isControl(b []byte) bool {
	if b[0] != '0' || b[1] != '0' {
		return false
	}
	switch c := b[3]; b[2] {
	case '0': // not 8, 9, a, c, d: \b \t \n \f \r
		return '0' <= c && c <= '7' || c == 'b' || c == 'e' || c == 'f'
	case '1':
		return '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
	}
	return false
}

// MaxDepth is how deeply arrays and objects may nest; Parse refuses more.
const MaxDepth = 1000
