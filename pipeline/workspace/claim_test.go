package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// TestBegun: linked working trees share a state directory, but not what was
// begun in them; and a repository that is moved takes it along.
func TestBegun(t *testing.T) {
	dir := t.TempDir()
	files{"main/a": "1\n", "side/a": "1\n"}.put(t, dir)
	at := func(root, tree string) *Tree {
		return openWith(t, filepath.Join(root, tree), filepath.Join(root, "main/.git/countersign"))
	}
	begun := func(tree *Tree, want ...string) {
		t.Helper()
		if got, err := tree.Begun(); !slices.Equal(got, want) || err != nil {
			t.Errorf("begun are %q (%v), want %q", got, err, want)
		}
	}
	fatal(t, os.MkdirAll(filepath.Join(dir, "main/.git/countersign"), 0o777))
	begun(at(dir, "main"))
	for range 2 {
		fatal(t, at(dir, "main").Begin("tx_b/apply_1", "tx_a/apply_2"))
	}
	begun(at(dir, "main"), "tx_a/apply_2", "tx_b/apply_1")
	begun(at(dir, "side"))
	moved := filepath.Join(t.TempDir(), "moved")
	fatal(t, os.Rename(dir, moved))
	for range 2 {
		if err := at(moved, "main").End("tx_a/apply_2"); err != nil {
			t.Error(err)
		}
	}
	begun(at(moved, "main"), "tx_b/apply_1")
	if err := at(moved, "main").End("tx_b/apply_1", "tx_a/apply_2"); err != nil {
		t.Error(err)
	}
	begun(at(moved, "main"))
	if left, _ := filepath.Glob(filepath.Join(moved, "main/.git/countersign/applying-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
