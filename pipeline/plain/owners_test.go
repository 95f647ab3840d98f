package plain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// TestNameOwners: those who own the paths that wait are named, behind the need that waits.
func TestNameOwners(t *testing.T) {
	need := approval.Need{Kind: policy.KindProtected, Required: 1, Of: policy.Need{Owners: true}}
	const is = "protected_path by the code owners: 0 of 1"
	for waiting, want := range map[string]string{
		"":                    is,
		"bob/y.go zoe/z.go":   is + " (bob/y.go: owned by @bob, @acme/core; zoe/z.go: nobody owns it)",
		"1 2 3 4 5 6 7":       is + " (1: nobody owns it; 2: nobody owns it; 3: nobody owns it; 4: nobody owns it; 5: nobody owns it; and 2 more)",
		"wrong":               is + " (wrong: its owners cannot be told: line 2)",
		"esc\u202eape/\u200b": is + " (esc ape/: nobody owns it)",
	} {
		need.Waiting = strings.Fields(waiting)
		v := approval.Verdict{Reason: "1 of 1 approvals; " + is + "; and more", Needs: []approval.Need{{}, need}}
		got := plain.NameOwners(v, func(path string) ([]string, error) {
			if path == "wrong" {
				return nil, errors.New("line 2")
			}
			return map[string][]string{"bob/y.go": {"@bob", "@acme/core"}}[path], nil
		})
		if got.Reason != "1 of 1 approvals; "+want+"; and more" {
			t.Errorf("%q: %s", waiting, got.Reason)
		}
		if got := plain.NameOwners(v, nil); got.Reason != v.Reason {
			t.Error(got.Reason)
		}
	}
}
