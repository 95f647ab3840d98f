package canon

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// appendValue writes v; depth is how many arrays and objects are around it.
func appendValue(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case float64:
		return appendNumber(b, v)
	case string:
		return appendString(b, v)
	case []any:
		if depth == MaxDepth {
			return nil, errDeep
		}
		b = append(b, '[')
		for i, one := range v {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendValue(b, one, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		if depth == MaxDepth {
			return nil, errDeep
		}
		return appendObject(b, v, depth+1)
	}
	// Any other Go value is written as the document that encoding/json makes of it.
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	doc, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	return appendValue(b, doc, depth)
}

var errDeep = fmt.Errorf("nested deeper than %d levels", MaxDepth)

// appendNumber writes a number as ECMAScript's Number::toString does (RFC 8785 3.2.2.3): its shortest digits,
// with an exponent below 1e-6 and from 1e21 on.
func appendNumber(b []byte, f float64) ([]byte, error) {
	switch size := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, fmt.Errorf("number %v has no JSON form", f)
	case f == 0: // also -0
		return append(b, '0'), nil
	case 1e-6 <= size && size < 1e21:
		return strconv.AppendFloat(b, f, 'f', -1, 64), nil
	}
	// Go writes two digits of an exponent at least.
	return append(b, strings.Replace(strconv.FormatFloat(f, 'e', -1, 64), "e-0", "e-", 1)...), nil
}

func appendObject(b []byte, m map[string]any, depth int) ([]byte, error) {
	b = append(b, '{')
	for i, k := range slices.SortedFunc(maps.Keys(m), Compare) {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendString(b, k); err != nil {
			return nil, err
		}
		if b, err = appendValue(append(b, ':'), m[k], depth); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendString follows RFC 8785 3.2.2.2: two-character escapes where they
// exist, \u00xx for the other controls, everything else as UTF-8.
func appendString(b []byte, s string) ([]byte, error) {
	b = append(b, '"')
	for i, done := 0, 0; ; {
		for i < len(s) && ' ' <= s[i] && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\' {
			i++
		}
		b = append(b, s[done:i]...)
		if i == len(s) {
			return append(b, '"'), nil
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		unit, isLone := surrogateAt(s[i:])
		switch short := strings.IndexRune("\"\\\b\f\n\r\t", r); {
		case isLone:
			b, size = fmt.Appendf(b, `\u%04x`, unit), 3
		case r == utf8.RuneError && size == 1:
			return nil, fmt.Errorf("string is not valid UTF-8 at byte %d", i)
		case short >= 0:
			b = append(b, '\\', `"\bfnrt`[short])
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, s[i:i+size]...)
		}
		i += size
		done = i
	}
}

// Compare orders two strings by UTF-16 code unit, as RFC 8785 3.2.3 and
// ECMAScript do. It differs from byte order only where a character outside the
// Basic Multilingual Plane, or a lone surrogate, meets U+E000..U+FFFF.
func Compare(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i < len(a) && i < len(b) && a[i] >= 0xED && b[i] >= 0xED { // a character from U+D000 up begins here in both
		return slices.Compare(units(a[i:]), units(b[i:]))
	}
	return strings.Compare(a[i:], b[i:])
}

// units is the UTF-16 form of a string that may hold lone surrogates (WTF-8).
func units(s string) []uint16 {
	out := make([]uint16, 0, len(s))
	for i := 0; i < len(s); {
		if unit, ok := surrogateAt(s[i:]); ok {
			out = append(out, unit)
			i += 3
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		out = utf16.AppendRune(out, r)
		i += size
	}
	return out
}

// surrogateAt decodes the lone surrogate that s begins with, if it does:
// ED A0..BF 80..BF, which UTF-8 forbids and WTF-8 uses.
func surrogateAt(s string) (uint16, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | uint16(s[1]&0x3F)<<6 | uint16(s[2]&0x3F), true
}
