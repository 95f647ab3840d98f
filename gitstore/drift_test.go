package gitstore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
)

func TestDriftFiles(t *testing.T) {
	w := newWork(t, map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n", "dir/deep/c.txt": "c\n", "run.sh": "r\n"})
	from := w.git("rev-parse", "HEAD")
	w.git("mv", "dir/b.txt", "moved.txt")
	w.git("update-index", "--chmod=+x", "run.sh")
	w.chmod("run.sh", 0o755)
	w.git("commit", "-q", "-m", "2")
	w.git("rm", "-q", "-r", "dir")
	w.write("dir", "a file now\n")
	fatal(t, os.Symlink("a.txt", filepath.Join(w.dir, "link")))
	w.git("add", "--all")
	w.git("commit", "-q", "-m", "3")
	to := w.git("rev-parse", "HEAD")
	want := strings.Split(w.git("diff", "--name-only", "--no-renames", from, to), "\n")
	for _, pair := range [][2]string{{from, to}, {to, from}} {
		commits, files, err := w.open().Drift(context.Background(), pair[0], pair[1])
		slices.Sort(files)
		if commits != 2 || !slices.Equal(files, want) || err != nil {
			t.Errorf("%d commits and %q, %v; git has %q", commits, files, err, want)
		}
	}
}

// TestDriftCutOff: in a shallow clone, what is there can be compared, and what
// reaches further is an error.
func TestDriftCutOff(t *testing.T) {
	w := newWork(t, map[string]string{"a.txt": "0\n"})
	ids := []string{w.git("rev-parse", "HEAD")}
	for i := range 4 {
		w.write("a.txt", strconv.Itoa(i+1)+"\n")
		w.git("commit", "-q", "-a", "-m", "more")
		ids = append(ids, w.git("rev-parse", "HEAD"))
	}
	dir := filepath.Join(t.TempDir(), "shallow")
	w.git("clone", "-q", "--depth=3", "file://"+w.dir, dir)
	repo, err := gitstore.Open(dir)
	fatal(t, err)
	defer repo.Close()
	if n, files, err := repo.Drift(context.Background(), ids[2], ids[4]); n != 2 || len(files) != 1 || err != nil {
		t.Error(n, files, err)
	}
	for _, from := range []string{ids[1], strings.Repeat("1", 40), ""} {
		var cut *gitstore.CutOffError
		if n, _, err := repo.Drift(context.Background(), from, ids[4]); !errors.As(err, &cut) {
			t.Errorf("from %q: %d, %v", from, n, err)
		}
	}
	var cut *gitstore.CutOffError // also for the commits of a branch, as audit and evidence list them
	tip, err := repo.BranchTip(context.Background(), "main")
	fatal(t, err)
	if got, err := repo.CommitsBetween(context.Background(), ids[0], tip); !errors.As(err, &cut) || cut.Missing != ids[1] {
		t.Error(got, err)
	}
	if got, err := repo.CommitsBetween(context.Background(), ids[2], tip); len(got) != 2 || err != nil {
		t.Error(got, err)
	}
}
