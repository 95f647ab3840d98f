package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
)

// TestT79ApprovedTree: a statement names a tree as approved only if it is what the approved
// patch makes of the reviewed commit, whatever commit a record names.
func TestT79ApprovedTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) string { t.Helper(); return strings.TrimSpace(gitIn(t, dir, args...)) }
	git("init", "-q", "-b", "main")
	commit := func(files map[string]string) string {
		t.Helper()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "-A")
		git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "x")
		return git("rev-parse", "HEAD")
	}
	base := commit(map[string]string{"a": "a\n"})
	approved := commit(map[string]string{"a": "b\n"})
	more := commit(map[string]string{"evil": "e\n"})
	repo, err := gitstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	set, err := repo.Diff(t.Context(), base, approved)
	if err != nil {
		t.Fatal(err)
	}
	for commit, want := range map[string]string{approved: git("rev-parse", approved+"^{tree}"), more: "", base: "", "0123456789012345678901234567890123456789": ""} {
		if got := approvedTree(repo, base, commit, set.ID()); got != want {
			t.Errorf("%s: %q, want %q", commit, got, want)
		}
	}
}
