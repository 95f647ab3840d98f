package audit_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestT03DeniedWhileItWasApplied: an apply that was cut off records what it finds afterwards,
// whoever put it there; if the patch was denied before that, nothing explains it.
func TestT03DeniedWhileItWasApplied(t *testing.T) {
	t.Parallel()
	for life, want := range map[storetest.Life]bool{storetest.Late: false, storetest.Whole: true, storetest.Retried: true} {
		entries, err := storetest.Lives(life)
		if err != nil {
			t.Fatal(err)
		}
		tree := fstest.MapFS{}
		for _, e := range entries {
			for name, data := range e.Files {
				tree[name] = &fstest.MapFile{Data: data, Mode: 0o644}
			}
		}
		all, err := ledger.All(tree)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v %+v", err, all)
		}
		claims, err := audit.Claims(tree, all[0].PatchID())
		if err != nil || len(claims) != 1 || claims[0].AppliedCommit == "" {
			t.Fatalf("%v %+v", err, claims)
		}
		if got := claims[0]; got.Explains != want || strings.Contains(got.Why, "denied") == want {
			t.Errorf("%+v", got)
		}
	}
}
