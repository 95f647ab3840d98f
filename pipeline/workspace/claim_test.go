package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// TestClaim: linked working trees share a state directory, but not a claim; and
// a repository that is moved takes it along.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	files{"main/a": "1\n", "side/a": "1\n"}.put(t, dir)
	at := func(root, tree string) Claim {
		return openWith(t, filepath.Join(root, tree), filepath.Join(root, "main/.git/countersign")).Claim()
	}
	begun := func(c Claim, want string) {
		t.Helper()
		if got, err := c.Begun(); got != want || err != nil {
			t.Errorf("begun is %q (%v), want %q", got, err, want)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "main/.git/countersign"), 0o777); err != nil {
		t.Fatal(err)
	}
	begun(at(dir, "main"), "")
	if err := at(dir, "main").Begin("tx/apply_1"); err != nil {
		t.Fatal(err)
	}
	begun(at(dir, "main"), "tx/apply_1")
	begun(at(dir, "side"), "")
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	begun(at(moved, "main"), "tx/apply_1")
	for range 2 {
		if err := at(moved, "main").End(); err != nil {
			t.Error(err)
		}
	}
	begun(at(moved, "main"), "")
}
