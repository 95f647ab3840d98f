package canon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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
	case []any, map[string]any:
		if depth == MaxDepth {
			return nil, fmt.Errorf("nested deeper than %d levels", MaxDepth)
		}
		return appendNested(b, v, depth+1)
	}
	return appendOther(b, v, depth)
}

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

// appendOther writes a Go value that is not of a parsed document's types, as the
// document that encoding/json makes of it.
func appendOther(b []byte, v any, depth int) ([]byte, error) {
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

func appendNested(b []byte, v any, depth int) ([]byte, error) {
	if m, ok := v.(map[string]any); ok {
		return appendObject(b, m, depth)
	}
	return appendArray(b, v.([]any), depth)
}

func appendArray(b []byte, vs []any, depth int) ([]byte, error) {
	b = append(b, '[')
	for i, v := range vs {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, v, depth); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
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
