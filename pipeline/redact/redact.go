// Package redact is what the stages ask of whoever knows secrets (package secret
// does): which ones a patch introduces, and texts without them. A patch that carries a secret is
// sealed, in the format age-encryption.org/v1, for the people whom the Policy names under seal_to;
// this is the only door to filippo.io/age.
package redact

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Finder finds secrets and takes them out. It may be used by several goroutines at
// once, and is never changed.
type Finder interface {
	// Find returns the secrets in s, in order; they do not overlap.
	Find(s string) []Place
	// Text returns s with every secret replaced.
	Text(s string) string
	// Diff returns a whole Git diff with its secrets replaced. It need not apply.
	Diff(diff []byte) []byte
	// JSON returns a JSON document in canonical form with its secrets replaced, but for
	// strings of which typed says that they are a hash, an id or the like.
	JSON(doc []byte, typed func(key, value string) bool) ([]byte, error)
	// Learn returns the secrets that a patch introduces, by path and line, a Finder
	// that knows them wherever they stand, and what its Diff makes of the patch.
	Learn(set patch.Patchset) (knows Finder, found []Finding, clean []byte)
	// Refuse returns a *FoundError if a text, which is at path, has what looks like a
	// secret; why says why it must not.
	Refuse(path, text, why string) error
}

// A Place says where in a text a secret is, and never what it is. Start and End are
// offsets in bytes.
type Place struct {
	Kind       string
	Start, End int
}

// A Finding is a secret that a patch introduces. Path is the file's after the patch,
// redacted where it holds a secret itself. Line counts from 1 in the file after the
// patch; it is 0 for the name, and 1 for a binary file.
type Finding struct {
	Path string
	Line int
	Kind string
}

// A FoundError says where something that must not hold secrets has what looks
// like some. It never holds one.
type FoundError struct {
	Found []Finding
	Why   string // it must not
}

func (e *FoundError) Error() string {
	f := e.Found[0]
	at := patch.Quote(f.Path)
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, f.Line)
	}
	text := fmt.Sprintf("%s: what looks like a secret (%s)", at, f.Kind)
	if n := len(e.Found) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text + ": " + e.Why
}

func (*FoundError) Hint() string {
	return "take it out of the patch, and replace it everywhere if it is a real secret"
}
