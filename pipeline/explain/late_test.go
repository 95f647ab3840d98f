package explain_test

import (
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
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
		index, err := indexOf(tree)
		if err != nil {
			t.Fatal(err)
		}
		base := files{path(0): before(0)}
		code := changing{between(t, base, files{path(0): after(0)}), base.fs()}
		got, err := explain.Run(t.Context(), explain.Options{Ledger: tree, Index: index, Code: code, Default: []string{"base"}}, []history.BranchCommit{{ID: "made", Parents: []string{"base"}}})
		if err != nil {
			t.Fatal(err)
		}
		if is := got.Unexplained["made"].Code == explain.Denied; is == want || len(got.Explained) == 1 != want {
			t.Errorf("%+v", got)
		}
	}
}
