package secret

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

// A FoundError says where something that must not hold secrets has what looks
// like some. It never holds one.
type FoundError struct {
	Found []PatchFinding
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

// Refuse returns a *FoundError if a text has what looks like a secret. path is
// where the text is, and why says why it must not have one.
func (f *Finder) Refuse(path, text, why string) error {
	found := f.Find(text)
	if len(found) == 0 {
		return nil
	}
	return &FoundError{[]PatchFinding{{Path: f.Text(path), Kind: found[0].Kind}}, why}
}
