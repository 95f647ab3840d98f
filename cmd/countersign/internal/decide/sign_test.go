package decide

import (
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
)

// A signature that looks like a secret by chance is made again, and not for ever.
func TestSignedAgain(t *testing.T) {
	broken := errors.New("no key")
	for bad, fails := range map[int]bool{0: false, 1: false, 2: false, 3: true} {
		signed, redacted := 0, 0
		s, text, err := comment(func() (*signature, error) { signed++; return &signature{}, nil }, false, func(text string) string {
			if redacted++; redacted <= bad {
				return "<REDACTED:x>"
			}
			return text
		})
		if fails != (err != nil) || fails != (s == nil) || fails != (text == "") || signed != min(bad+1, 3) {
			t.Errorf("%d are bad: %v, %q, %v, signed %d times", bad, s, text, err, signed)
		}
	}
	if s, text, err := comment(func() (*signature, error) { return nil, broken }, false, nil); s != nil || text != "" || !errors.Is(err, broken) {
		t.Errorf("%v, %q, %v", s, text, err)
	}
}

type signature = approval.Signature
