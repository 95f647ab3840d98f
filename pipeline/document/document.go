// Package document reads and verifies the documents in which others propose a change: the
// Proposal and patch.json. It writes values in messages as ECMAScript does.
package document

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
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

// A Checker gathers violations while a verifier walks its document.
type Checker struct{ canon.Finder }

// Schema notes a violation of a document's shape.
func (f *Checker) Schema(path, format string, args ...any) { f.Add("SCHEMA", path, format, args...) }

// Document begins to verify a parsed document, which must be an object with a
// schema version; what names it in a message, and id is the version's rule. It
// reports whether the rest can be looked at.
func (f *Checker) Document(doc any, what, id, version string) (map[string]any, bool) {
	m, ok := doc.(map[string]any)
	if !ok {
		word := TypeOf(doc, true)
		if doc == nil {
			word = "null"
		}
		f.Schema("$", "%s must be object, got %s", what, word)
		return nil, false
	}
	switch v := m[version].(type) {
	case nil:
		f.Add(id, "$."+version, "%s is missing", version)
	case string:
		if v == "" {
			f.Add(id, "$."+version, "%s cannot be empty", version)
		}
	default:
		f.Add(id, "$."+version, "%s must be string, got %s", version, TypeOf(v, true))
	}
	return m, true
}
