package explain_test

import (
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestT03DeniedWhileItWasApplied: an apply that was cut off records what it finds afterwards,
// whoever put it there; if the patch was denied before that, nothing explains it.
func TestT03DeniedWhileItWasApplied(t *testing.T) {
	t.Parallel()
	for life, want := range map[storetest.Life]bool{storetest.Late: false, storetest.Whole: true, storetest.Retried: true} {
		tree, commits := lived(t, life)
		if got := judged(t, tree, commits); got.Unexplained["made"].Code == explain.Denied == want || len(got.Explained) == 1 != want {
			t.Errorf("%+v", got)
		}
	}
}

// T03 What was denied in another transaction before it was applied, nothing explains: the ledger's own order tells.
func TestT03DeniedElsewhere(t *testing.T) {
	t.Parallel()
	tree, commits := lived(t, storetest.Whole)
	ids, err := lookup.IDs(tree)
	fatal(t, err)
	state, err := lookup.State(tree, ids[0])
	fatal(t, err)
	denial := ledger.DeniedDir(state.PatchID()) + "/fileChange.json"
	tree[denial] = &fstest.MapFile{Data: []byte("{}\n"), Mode: 0o644}
	for n := range len(commits) + 1 {
		applied := slices.ContainsFunc(commits[:n], func(paths []string) bool { return slices.Contains(paths, ledger.Dir(ids[0])+"/"+ledger.ResultFile) })
		got := judged(t, tree, slices.Insert(slices.Clone(commits), n, []string{denial}))
		if (got.Unexplained["made"].Code == explain.Denied) == applied || len(got.Explained) == 1 != applied {
			t.Errorf("denied in commit %d of %d: %+v", n, len(commits), got)
		}
	}
}

// lived is the ledger of one life, and what each commit of it adds or changes.
func lived(t *testing.T, life storetest.Life) (tree fstest.MapFS, commits [][]string) {
	entries, err := storetest.Lives(life)
	fatal(t, err)
	for _, e := range entries {
		commits = append(commits, slices.Collect(maps.Keys(e.Files)))
	}
	tree, _ = storetest.Recorded(t, life)
	return tree, commits
}

// judged is what accounts for the commit "made", which is what the life's patch makes.
func judged(t *testing.T, tree fstest.MapFS, commits [][]string) explain.Result {
	clock := explain.NewClock(timeline(commits))
	err := clock.Commits(func(history.Commit) {})
	fatal(t, err)
	index, err := explain.NewIndex(tree, clock)
	fatal(t, err)
	base := files{path(0): before(0)}
	changed := changing{between(t, base, files{path(0): after(0)}), base.fs()}
	got, err := explain.Run(t.Context(), explain.Options{Ledger: tree, Index: index, Code: changed, Default: []string{"base"}}, []code.BranchCommit{{ID: "made", Parents: []string{"base"}}})
	fatal(t, err)
	return got
}

// A timeline has a commit for each list of paths, the oldest first.
type timeline [][]string

func (h timeline) Commits(visit func(history.Commit)) error {
	for i, paths := range h {
		c := history.Commit{Age: len(h) - 1 - i}
		for _, path := range paths {
			c.Changes = append(c.Changes, history.Change{Path: path})
		}
		visit(c)
	}
	return nil
}
func (timeline) Blob(history.ID) ([]byte, error)                 { return nil, nil }
func (timeline) Former(string) (map[string]history.Entry, error) { return nil, nil }
