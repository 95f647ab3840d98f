package gitstore_test

import (
	"os"
	"testing"
)

// T95 Git walks through commits without holding them to their names: one whose file has another's content is no way to
// anywhere.
func TestT95HistoryIsHeld(t *testing.T) {
	w := initWork(t)
	tree := w.git("write-tree")
	a := w.git("commit-tree", tree, "-m", "a")
	b := w.git("commit-tree", tree, "-p", a, "-m", "b")
	c := w.git("commit-tree", tree, "-p", b, "-m", "c")
	x := w.git("commit-tree", tree, "-m", "x")
	forged := w.git("commit-tree", tree, "-p", x, "-m", "b")
	w.git("update-ref", "refs/heads/main", c)
	raw, err := os.ReadFile(w.object(forged))
	w.do(err, os.Remove(w.object(b)), os.WriteFile(w.object(b), raw, 0o444))
	r := w.open()
	defer func() { _ = r.Close() }()
	if is, err := r.Descends(t.Context(), c, x); is || err == nil {
		t.Errorf("Descends: %v, %v", is, err)
	}
	if base, err := r.MergeBase(t.Context(), c, x); err == nil {
		t.Errorf("MergeBase: %s", base)
	}
	if err := r.CheckMergeBase(t.Context(), x, c, x); err == nil {
		t.Error("CheckMergeBase")
	}
	if n, files, err := r.Drift(t.Context(), c, x); err == nil {
		t.Errorf("Drift: %d %q", n, files)
	}
}
