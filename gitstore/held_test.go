package gitstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/git"
)

// T95 Git walks through commits without holding them to their names: one whose file has another's content is no way to
// anywhere.
func TestT95HistoryIsHeld(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		said, err := git.Run(t.Context(), dir, append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0"}, args...)...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return strings.TrimSpace(said)
	}
	run("init", "-q")
	tree := run("write-tree")
	a := run("commit-tree", tree, "-m", "a")
	b := run("commit-tree", tree, "-p", a, "-m", "b")
	c := run("commit-tree", tree, "-p", b, "-m", "c")
	x := run("commit-tree", tree, "-m", "x")
	forged := run("commit-tree", tree, "-p", x, "-m", "b")
	run("update-ref", "refs/heads/main", c)
	file := func(id string) string { return filepath.Join(dir, ".git", "objects", id[:2], id[2:]) }
	raw, err := os.ReadFile(file(forged))
	if err == nil {
		err = os.Remove(file(b))
	}
	if err == nil {
		err = os.WriteFile(file(b), raw, 0o444)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := gitstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
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

// T95 A setting that stands before any section, and a user who has status show stashes, keep nothing from being read.
func TestT95OddSettings(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"config", "status.showStash", "true"}} {
		if _, err := git.Run(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, ".git", "config")
	raw, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, append([]byte("alone = 1\n"), raw...), 0o666)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "a"), []byte("a\n"), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"add", "a"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "a"}} {
		if _, err := git.Run(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("b\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := git.Run(t.Context(), dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "stash", "-q"); err != nil {
		t.Fatal(err)
	}
	r, err := gitstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if changed, err := r.Changed(t.Context()); len(changed) > 0 || err != nil {
		t.Errorf("%q %v", changed, err)
	}
}
