package canon

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A SyntaxError says where a document stops being JSON. Offset counts bytes
// from 0.
type SyntaxError struct {
	Offset  int
	Message string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Message)
}

// Parse reads one JSON document (RFC 8259) and refuses duplicate keys, invalid
// UTF-8, numbers beyond a double, trailing text, and nesting past MaxDepth.
func Parse(data []byte) (any, error) {
	p := parser{data: data}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos != len(p.data) {
		return nil, p.fail("text after the document")
	}
	return v, nil
}

type parser struct {
	data []byte
	pos  int
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{p.pos, fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	for p.pos < len(p.data) && p.data[p.pos] <= ' ' {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.pos == len(p.data) {
		return 0
	}
	return p.data[p.pos]
}

// value reads any value; depth is how many arrays and objects are around it.
func (p *parser) value(depth int) (any, error) {
	c := p.peek()
	if depth == MaxDepth && (c == '{' || c == '[') {
		return nil, p.fail("nested deeper than %d levels", MaxDepth)
	}
	switch c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		return p.string()
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return p.number()
		}
	}
	if p.pos == len(p.data) {
		return nil, p.fail("unexpected end")
	}
	return nil, p.fail("unexpected character %q", p.data[p.pos])
}

func (p *parser) word(w string) error {
	if len(p.data)-p.pos < len(w) || string(p.data[p.pos:p.pos+len(w)]) != w {
		return p.fail("expected %s", w)
	}
	p.pos += len(w)
	return nil
}

func (p *parser) array(depth int) (any, error) {
	p.pos++
	out := []any{}
	if p.peek() == ']' {
		p.pos++
		return out, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		done, err := p.next(']')
		if done || err != nil {
			return out, err
		}
	}
}

func (p *parser) object(depth int) (any, error) {
	p.pos++
	out := map[string]any{}
	if p.peek() == '}' {
		p.pos++
		return out, nil
	}
	top := "" // the greatest key so far
	for {
		key, err := p.member(out, top, depth)
		if err != nil {
			return nil, err
		}
		top = max(top, key)
		done, err := p.next('}')
		if done || err != nil {
			return out, err
		}
	}
}

// member reads a key and its value. A key beyond top cannot be in out yet.
func (p *parser) member(out map[string]any, top string, depth int) (string, error) {
	if p.peek() != '"' {
		return "", p.fail("expected a key")
	}
	at := p.pos
	key, err := p.string()
	if err != nil {
		return "", err
	}
	if key <= top {
		if _, twice := out[key]; twice {
			p.pos = at
			return "", p.fail("duplicate key %q", key)
		}
	}
	if p.peek() != ':' {
		return "", p.fail("expected ':'")
	}
	p.pos++
	v, err := p.value(depth + 1)
	if err != nil {
		return "", err
	}
	out[key] = v
	return key, nil
}

// next consumes the comma before another element, or the closing bracket.
func (p *parser) next(end byte) (done bool, err error) {
	switch p.peek() {
	case ',':
		p.pos++
		return false, nil
	case end:
		p.pos++
		return true, nil
	}
	return false, p.fail("expected ',' or '%c'", end)
}

// number follows RFC 8259 6: no leading zeros, no bare point, no plus sign.
func (p *parser) number() (any, error) {
	short := scanner{data: p.data, pos: p.pos}
	if n, ok := short.integer(); ok {
		p.pos = short.pos
		return float64(n), nil
	}
	start := p.pos
	p.accept('-')
	if !p.accept('0') && !p.digits() {
		return nil, p.fail("invalid number")
	}
	if p.accept('.') && !p.digits() {
		return nil, p.fail("invalid number")
	}
	if p.accept('e') || p.accept('E') {
		_ = p.accept('+') || p.accept('-')
		if !p.digits() {
			return nil, p.fail("invalid number")
		}
	}
	f, err := strconv.ParseFloat(string(p.data[start:p.pos]), 64)
	if errors.Is(err, strconv.ErrRange) && math.IsInf(f, 0) {
		p.pos = start
		return nil, p.fail("number out of range")
	}
	return f, nil
}

func (p *parser) accept(c byte) bool {
	if p.pos < len(p.data) && p.data[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.data) && '0' <= p.data[p.pos] && p.data[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) string() (string, error) {
	p.pos++
	start := p.pos
	for ascii := true; ; ascii = false { // most strings have nothing to unescape
		p.pos = plain(p.data, p.pos)
		if p.pos == len(p.data) {
			return "", p.fail("unexpected end in a string")
		}
		switch c := p.data[p.pos]; {
		case c == '"' && ascii:
			p.pos++
			return string(p.data[start : p.pos-1]), nil
		case c == '"':
			p.pos++
			return p.checked(p.data[start:p.pos-1], start)
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			return "", p.fail("control character in a string")
		}
		p.pos++
	}
}

func (p *parser) checked(raw []byte, at int) (string, error) {
	if !utf8.Valid(raw) {
		p.pos = at
		return "", p.fail("string is not valid UTF-8")
	}
	return string(raw), nil
}

// escaped goes on from the first backslash of the string that begins at start.
func (p *parser) escaped(start int) (string, error) {
	if _, err := p.checked(p.data[start:p.pos], start); err != nil {
		return "", err
	}
	out := append(make([]byte, 0, 2*(p.pos-start)+32), p.data[start:p.pos]...)
	for p.pos < len(p.data) {
		from := p.pos
		p.pos = plain(p.data, from)
		if out = append(out, p.data[from:p.pos]...); p.pos == len(p.data) {
			break
		}
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			return string(out), nil
		case c == '\\':
			p.pos++
			var err error
			if out, err = p.escape(out); err != nil {
				return "", err
			}
		case c < 0x20:
			return "", p.fail("control character in a string")
		default:
			r, size := utf8.DecodeRune(p.data[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", p.fail("string is not valid UTF-8")
			}
			out = append(out, p.data[p.pos:p.pos+size]...)
			p.pos += size
		}
	}
	return "", p.fail("unexpected end in a string")
}

// escapes holds what stands behind a backslash and what it means, 0 for none.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

func (p *parser) escape(out []byte) ([]byte, error) {
	if p.pos == len(p.data) {
		return nil, p.fail("unexpected end in a string")
	}
	c := p.data[p.pos]
	if c != 'u' {
		if escapes[c] == 0 {
			return nil, p.fail("invalid escape")
		}
		p.pos++
		return append(out, escapes[c]), nil
	}
	p.pos++
	r, ok := p.hex4(p.pos)
	if !ok {
		return nil, p.fail("invalid escape")
	}
	p.pos += 4
	if low, ok := p.lowHalf(); ok && 0xD800 <= r && r < 0xDC00 {
		p.pos += 6
		r = utf16.DecodeRune(r, low)
	}
	return appendUnit(out, r), nil
}

// lowHalf reads an escaped low surrogate at the cursor without moving it.
func (p *parser) lowHalf() (rune, bool) {
	if p.pos+6 > len(p.data) || p.data[p.pos] != '\\' || p.data[p.pos+1] != 'u' {
		return 0, false
	}
	r, ok := p.hex4(p.pos + 2)
	return r, ok && 0xDC00 <= r && r < 0xE000
}

func (p *parser) hex4(at int) (rune, bool) {
	if at+4 > len(p.data) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.data[at:at+4]), 16, 16)
	return rune(n), err == nil
}

// appendUnit appends a code point or a lone surrogate in WTF-8.
func appendUnit(b []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(b, 0xED, 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(b, r)
}
