package rule

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/canon"
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
	case string:
		return v
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
	b, err := canon.Marshal(v)
	if err != nil { // what JSON cannot hold but a sum can reach
		return strings.NewReplacer("+Inf", "Infinity", "-Inf", "-Infinity").Replace(fmt.Sprint(v))
	}
	return string(b)
}

// Trim is ECMAScript's String.prototype.trim: it takes off the white space of
// ECMA-262 12.2 and the line terminators of 12.3. Unlike strings.TrimSpace it
// takes off U+FEFF and leaves U+0085.
func Trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		return strings.ContainsRune("\t\n\v\f\r\uFEFF\u2028\u2029", r) || unicode.Is(unicode.Zs, r)
	})
}
