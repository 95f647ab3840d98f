package secret

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Redacted is a text that is safe to store, print or send. It is made here
// alone: from a text by a Finder, from constants, and from other Redacted
// texts. What writes to the outside takes a Redacted, so nothing gets there
// past a Finder. The zero Redacted is empty.
type Redacted struct{ text string }

// constant has no name outside, so only an untyped constant converts to it.
type constant string

// Redact is Text for a sink.
func (f *Finder) Redact(s string) Redacted { return Redacted{f.Text(s)} }

// RedactDiff is Diff for a sink.
func (f *Finder) RedactDiff(diff []byte) Redacted { return Redacted{string(f.Diff(diff))} }

// RedactJSON is JSON for a sink.
func (f *Finder) RedactJSON(doc []byte, typed func(key, value string) bool) (Redacted, error) {
	out, err := f.JSON(doc, typed)
	return Redacted{string(out)}, err
}

// Constant takes a text that stands in the program.
func Constant(s constant) Redacted { return Redacted{string(s)} }

// Sprintf formats like fmt.Sprintf. It panics on an argument that could hold a
// secret: only Redacted, booleans and numbers are taken.
func Sprintf(format constant, args ...any) Redacted {
	for _, arg := range args {
		switch arg.(type) {
		case Redacted, bool, int, int8, int16, int32, int64,
			uint, uint8, uint16, uint32, uint64, float32, float64:
		default:
			panic(fmt.Sprintf("secret: Sprintf of a %T", arg))
		}
	}
	return Redacted{fmt.Sprintf(string(format), args...)}
}

// Join is strings.Join.
func Join(parts []Redacted, separator constant) Redacted {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.text
	}
	return Redacted{strings.Join(texts, string(separator))}
}

// Show returns the text as it is shown: coloured, folded, made of a document's
// fields. show adds nothing that did not stand in the text.
func (r Redacted) Show(show func(string) string) Redacted { return Redacted{show(r.text)} }

// String returns the text.
func (r Redacted) String() string { return r.text }

// MarshalText returns the text.
func (r Redacted) MarshalText() ([]byte, error) { return []byte(r.text), nil }

// MarshalJSON returns the text as a JSON string.
func (r Redacted) MarshalJSON() ([]byte, error) { return json.Marshal(r.text) }
