package canon

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// appendValue writes v; depth is how many arrays and objects are around it.
func appendValue(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		if v {
			return append(b, "true"...), nil
		}
		return append(b, "false"...), nil
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

func appendNumber(b []byte, f float64) ([]byte, error) {
	if n := int64(f); -maxInteger < f && f < maxInteger && float64(n) == f {
		return strconv.AppendInt(b, n, 10), nil
	}
	s, err := jcs.NumberToJSON(f)
	if err != nil {
		return nil, fmt.Errorf("number %v has no JSON form", f)
	}
	return append(b, s...), nil
}

func appendObject(b []byte, m map[string]any, depth int) ([]byte, error) {
	var few [16]string // most objects have no more keys
	keys := few[:0]
	for k := range m {
		keys = append(keys, k)
	}
	if !slices.IsSortedFunc(keys, Compare) {
		slices.SortFunc(keys, Compare)
	}
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendString(b, k); err != nil {
			return nil, err
		}
		b = append(b, ':')
		if b, err = appendValue(b, m[k], depth); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendString follows RFC 8785 3.2.2.2: two-character escapes where they
// exist, \u00xx for the other controls, everything else as UTF-8.
func appendString(b []byte, s string) ([]byte, error) {
	b = append(b, '"')
	done := 0 // what of s is written
	for i := 0; i < len(s); {
		c := s[i]
		if ' ' <= c && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = appendASCII(append(b, s[done:i]...), c)
			i++
			done = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError || size > 1 {
			i += size
			continue
		}
		unit, ok := surrogateAt(s[i:])
		if !ok {
			return nil, fmt.Errorf("string is not valid UTF-8 at byte %d", i)
		}
		b = fmt.Appendf(append(b, s[done:i]...), `\u%04x`, unit)
		i += 3
		done = i
	}
	return append(append(b, s[done:]...), '"'), nil
}

func appendASCII(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	if c < 0x20 {
		return fmt.Appendf(b, `\u%04x`, c)
	}
	return append(b, c)
}

// Compare orders two strings by UTF-16 code unit, as RFC 8785 3.2.3 and
// ECMAScript do. It differs from byte order only where a character outside the
// Basic Multilingual Plane, or a lone surrogate, meets U+E000..U+FFFF.
func Compare(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	// Where both end or go on with ASCII, nothing from there on changes how the
	// bytes before are decoded.
	asciiAt := func(s string) bool { return i == len(s) || s[i] < utf8.RuneSelf }
	if asciiAt(a) && asciiAt(b) {
		return strings.Compare(a[i:], b[i:])
	}
	return slices.Compare(units(a), units(b))
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

// TypeOf is ECMAScript's typeof of a parsed value: string, number, boolean,
// object (also for null and arrays), or undefined if it is not present. The
// verifiers' messages print it.
func TypeOf(v any, present bool) string {
	if !present {
		return "undefined"
	}
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	}
	return "object"
}

// String is ECMAScript's String(v) of a parsed value: a string as it is, a
// number in its shortest form, an array's elements joined by commas, an object
// as [object Object], and undefined if it is not present.
func String(v any, present bool) string {
	if !present {
		return "undefined"
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case float64:
		switch { // what JSON cannot hold but a sum can reach
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		case math.IsNaN(v):
			return "NaN"
		}
		b, err := appendNumber(nil, v)
		if err != nil {
			panic("canon: finite number without a JSON form: " + err.Error())
		}
		return string(b)
	case []any: // Array.prototype.join, which prints null as nothing
		parts := make([]string, len(v))
		for i, one := range v {
			if one != nil {
				parts[i] = String(one, true)
			}
		}
		return strings.Join(parts, ",")
	case map[string]any:
		return "[object Object]"
	}
	return fmt.Sprint(v)
}

// Trim is ECMAScript's String.prototype.trim: it takes off the white space of
// ECMA-262 12.2 and the line terminators of 12.3. Unlike strings.TrimSpace it
// takes off U+FEFF and leaves U+0085.
func Trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		return strings.ContainsRune("\t\n\v\f\r\uFEFF\u2028\u2029", r) || unicode.Is(unicode.Zs, r)
	})
}
