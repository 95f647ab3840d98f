package plain_test

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
)

// A reason is a sentence with a subject.
func TestWhy(t *testing.T) {
	for reason, want := range map[string]string{
		"is not signed, which the Policy asks for: x": "it is not signed, which the Policy asks for: x",
		"names another patch":                         "it names another patch",
		"taken back by a later review":                "it was taken back by a later review",
		"expired":                                     "it has expired",
		"has no author":                               "it has no author",
		"has no permission, write needed":             "its author has no permission, write needed",
		"its author is the proposer":                  "its author is the proposer",
		"the Policy refuses secrets":                  "the Policy refuses secrets",
	} {
		if got := plain.Why(approval.Judged{Reason: reason}); got != want {
			t.Errorf("%q is %q", reason, got)
		}
	}
}
