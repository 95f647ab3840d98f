package gitstore

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// T80 git holds a lock on each ref that it packs: the lock is no ref, and what is
// read beside it are the refs, wherever they are just then.
func TestT80RefsBesideLocks(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(teststand.Git(t, dir, "", args...))
	}
	git("init", "-q", "-b", "main")
	git("commit", "-q", "--allow-empty", "-m", "one")
	git("update-ref", "refs/replace/"+strings.Repeat("a", 40), "HEAD")
	git("branch", "packed")
	git("pack-refs", "--all")
	git("branch", "loose")
	git("symbolic-ref", "refs/heads/alias", "refs/heads/loose")
	for _, lock := range []string{"main.lock", "loose.lock"} {
		fatal(t, os.WriteFile(filepath.Join(dir, ".git", "refs", "heads", lock), nil, 0o666))
	}
	r, err := Open(dir)
	fatal(t, err)
	refs, err := r.refs("refs")
	want := []string{"refs/heads/alias", "refs/heads/loose", "refs/heads/main", "refs/heads/packed", "refs/replace/" + strings.Repeat("a", 40)}
	if got := slices.Sorted(maps.Keys(refs)); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v", got, err)
	}
	for _, name := range want {
		if id := refs[name].id; id.IsZero() != (name == "refs/heads/alias") || !id.IsZero() && id.String() != git("rev-parse", name) {
			t.Errorf("%s is %s", name, id)
		}
	}
	if refs, err := r.refs("refs/replace"); err != nil || len(refs) != 1 {
		t.Errorf("%v, %v", refs, err)
	}
	if tips, err := r.tips(); err != nil || len(tips) != 1 {
		t.Errorf("%v, %v", tips, err)
	}
}
