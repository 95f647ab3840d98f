package canon

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deeply arrays and objects may nest; Parse refuses more.
const MaxDepth = 1000

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
	r := reader{text: string(data)}
	v, err := r.value(true, 0)
	if err != nil {
		return nil, err
	}
	if r.peek(); r.pos != len(r.text) {
		return nil, r.fail("text after the document")
	}
	return v, nil
}

// IsCanonical reports whether data is a document as Marshal writes it, byte for
// byte: whether Parse takes it and Marshal gives it back.
func IsCanonical(data []byte) bool {
	r := reader{text: string(data)}
	_, err := r.value(false, 0)
	return err == nil && r.pos == len(data) && !r.odd
}

// A reader reads a JSON text, and notes whether Marshal would have written all of it so.
type reader struct {
	text string
	pos  int
	odd  bool // something was not canonical; of an object with keys out of order, nobody looked for duplicates
	lone bool // a string held a lone surrogate
}

func (r *reader) fail(format string, args ...any) error {
	return &SyntaxError{r.pos, fmt.Sprintf(format, args...)}
}

// peek skips white space and returns the next byte, 0 at the end.
func (r *reader) peek() byte {
	for ; r.pos < len(r.text); r.pos++ {
		if c := r.text[r.pos]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
		r.odd = true
	}
	return 0
}

// value reads any value; depth is how many arrays and objects are around it. Where it is not to be
// kept, it is only looked at: nil is returned, and of an object that is not canonical duplicate keys may pass.
func (r *reader) value(keep bool, depth int) (any, error) {
	switch c := r.peek(); {
	case c == '{':
		var out map[string]any
		if keep {
			out = map[string]any{}
		}
		return out, r.object(depth, func(key string, at int) error {
			if _, twice := out[key]; twice {
				r.pos = at
				return r.fail("duplicate key %q", key)
			}
			v, err := r.value(keep, depth+1)
			if keep {
				out[key] = v
			}
			return err
		})
	case c == '[':
		out := []any{}
		err := r.list(']', depth, func() error {
			v, err := r.value(keep, depth+1)
			if keep {
				out = append(out, v)
			}
			return err
		})
		return out, err
	case c == '"':
		s, err := r.string()
		if !keep { // to return it takes memory
			return nil, err
		}
		return s, err
	case c == '-' || '0' <= c && c <= '9':
		n, err := r.number()
		if !keep {
			return nil, err
		}
		return n, err
	case r.pos == len(r.text):
		return nil, r.fail("unexpected end")
	}
	for _, w := range literals {
		if strings.HasPrefix(r.text[r.pos:], w.text) {
			r.pos += len(w.text)
			return w.value, nil
		}
	}
	return nil, r.fail("unexpected character %q", r.text[r.pos])
}

var literals = []struct {
	text  string
	value any
}{{"null", nil}, {"true", true}, {"false", false}}

// list reads what is between an opening bracket and its end, separated by commas.
func (r *reader) list(end byte, depth int, one func() error) error {
	if depth == MaxDepth {
		return r.fail("nested deeper than %d levels", MaxDepth)
	}
	r.pos++
	if r.peek() == end {
		r.pos++
		return nil
	}
	for {
		if err := one(); err != nil {
			return err
		}
		switch r.peek() {
		case ',':
			r.pos++
		case end:
			r.pos++
			return nil
		default:
			return r.fail("expected ',' or '%c'", end)
		}
	}
}

// object reads an object, of which one reads each value. Where the keys are in order, none is there twice.
func (r *reader) object(depth int, one func(key string, at int) error) error {
	first, last := true, ""
	return r.list('}', depth, func() error {
		if r.peek() != '"' {
			return r.fail("expected a key")
		}
		at := r.pos
		key, err := r.string()
		if err != nil {
			return err
		}
		r.odd = r.odd || !first && Compare(last, key) >= 0
		first, last = false, key
		if r.peek() != ':' {
			return r.fail("expected ':'")
		}
		r.pos++
		return one(key, at)
	})
}

// number reads a number, whose grammar encoding/json knows.
func (r *reader) number() (float64, error) {
	text := r.text[r.pos:]
	if end := strings.IndexFunc(text, func(c rune) bool { return !strings.ContainsRune("+-.0123456789Ee", c) }); end >= 0 {
		text = text[:end]
	}
	if !json.Valid([]byte(text)) {
		return 0, r.fail("invalid number")
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && math.IsInf(f, 0) {
		return 0, r.fail("number out of range")
	}
	var room [32]byte
	again, err := appendNumber(room[:0], f)
	r.odd = r.odd || string(again) != text
	r.pos += len(text)
	return f, err
}

// string reads a string, at whose quote the reader is.
func (r *reader) string() (string, error) {
	quote := r.pos
	r.pos++
	var out []byte // what stands before done, once there was an escape
	for done := r.pos; r.pos < len(r.text); {
		c := r.text[r.pos]
		if c < 0x20 {
			return "", r.fail("control character in a string")
		}
		if c != '"' && c != '\\' {
			r.pos++
			continue
		}
		part := r.text[done:r.pos]
		if !utf8.ValidString(part) {
			r.pos = done
			return "", r.fail("string is not valid UTF-8")
		}
		r.pos++
		if c == '"' && out == nil {
			return part, nil
		}
		out = append(out, part...)
		if c == '"' {
			again, err := appendString(nil, string(out))
			r.odd = r.odd || string(again) != r.text[quote:r.pos]
			return string(out), err
		}
		var err error
		if out, err = r.escape(out); err != nil {
			return "", err
		}
		done = r.pos
	}
	return "", r.fail("unexpected end in a string")
}

// What stands behind a backslash, and what it means.
const (
	escapeLetters = `"\/bfnrt`
	escapeMeans   = "\"\\/\b\f\n\r\t"
)

// escape reads what follows a backslash.
func (r *reader) escape(out []byte) ([]byte, error) {
	if r.pos == len(r.text) {
		return nil, r.fail("unexpected end in a string")
	}
	if i := strings.IndexByte(escapeLetters, r.text[r.pos]); i >= 0 {
		r.pos++
		return append(out, escapeMeans[i]), nil
	}
	unit, ok := r.unit(r.pos)
	if !ok {
		return nil, r.fail("invalid escape")
	}
	r.pos += 5
	if !utf16.IsSurrogate(unit) {
		return utf8.AppendRune(out, unit), nil
	}
	if strings.HasPrefix(r.text[r.pos:], `\`) {
		low, _ := r.unit(r.pos + 1)
		if pair := utf16.DecodeRune(unit, low); pair != utf8.RuneError {
			r.pos += 6
			return utf8.AppendRune(out, pair), nil
		}
	}
	r.lone = true
	return append(out, 0xED, 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F), nil // WTF-8
}

// unit reads the letter u and four hex digits: a UTF-16 code unit.
func (r *reader) unit(at int) (rune, bool) {
	if at+5 > len(r.text) || r.text[at] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(r.text[at+1:at+5], 16, 16)
	return rune(n), err == nil
}
