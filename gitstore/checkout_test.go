package gitstore_test

import (
	"errors"
	"os"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// T40 The branch that is checked out is moved by compare-and-swap alone, and no branch that is
// not, or is no more, checked out. Nothing is committed in the middle of a merge.
func TestT40Checkout(t *testing.T) {
	w := newWork(t, map[string]string{"a.txt": "1\n"})
	first := w.git("rev-parse", "HEAD")
	w.git("commit", "--quiet", "--allow-empty", "--message=more")
	second := w.git("rev-parse", "HEAD")
	w.git("branch", "other", first)
	repo := w.open()
	if branch, err := repo.Branch(t.Context()); err != nil || branch != "refs/heads/main" {
		t.Errorf("%q %v", branch, err)
	}
	for _, c := range []struct {
		branch, old, next string
		want              error
	}{
		{"refs/heads/main", first, first, writing.ErrMoved},
		{"refs/heads/other", first, second, writing.ErrMoved},
		{"refs/heads/main", first, second, nil}, // it is there
		{"refs/heads/main", second, first, nil},
	} {
		if err := repo.MoveBranch(t.Context(), c.branch, c.old, c.next); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if main, other := w.git("rev-parse", "main"), w.git("rev-parse", "other"); main != first || other != first {
		t.Errorf("main is %s, other is %s", main, other)
	}
	var no *code.UncommittableError
	change := []patch.Change{{Path: "a.txt", After: &patch.File{Mode: patch.Regular, Data: []byte("2\n")}}}
	for _, name := range []string{"MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "index.lock"} {
		fatal(t, os.Mkdir(w.path(".git/"+name), 0o777))
		if _, err := repo.Branch(t.Context()); !errors.As(err, &no) || (no.Hint == "git status") != (no.Lock == "") {
			t.Errorf("%s: %v", name, err)
		}
		if err := repo.Stage(t.Context(), change); (err != nil) != (name == "index.lock") {
			t.Errorf("staging beside %s: %v", name, err)
		}
		fatal(t, os.Remove(w.path(".git/"+name)))
	}
	w.git("checkout", "--quiet", "--detach")
	if head, err := repo.Head(t.Context()); err != nil || head != first {
		t.Errorf("detached at %s, %v", head, err)
	}
	if _, err := repo.Branch(t.Context()); !errors.As(err, &no) || no.Hint != "git switch -c at-"+first[:7] {
		t.Errorf("detached: %v", err)
	}
}
