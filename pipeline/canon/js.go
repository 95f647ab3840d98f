package canon

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

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
		return numberString(v)
	case []any:
		return joined(v)
	case map[string]any:
		return "[object Object]"
	}
	return fmt.Sprint(v)
}

// numberString also prints what JSON cannot hold but a sum can reach.
func numberString(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	b, err := Marshal(f)
	if err != nil {
		panic("canon: finite number without a JSON form: " + err.Error())
	}
	return string(b)
}

// joined is Array.prototype.join: null prints as nothing.
func joined(vs []any) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		if v != nil {
			parts[i] = String(v, true)
		}
	}
	return strings.Join(parts, ",")
}

// Trim is ECMAScript's String.prototype.trim. Unlike strings.TrimSpace it
// takes off U+FEFF and leaves U+0085.
func Trim(s string) string { return strings.TrimFunc(s, isSpace) }

// isSpace holds ECMA-262 12.2 white space and 12.3 line terminators.
func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', '\uFEFF', '\u2028', '\u2029':
		return true
	}
	return unicode.Is(unicode.Zs, r)
}
