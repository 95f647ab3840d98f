package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// BenchmarkScratch is a scratch tree of COUNTERSIGN_FILES files (1,000) beside git worktree add.
func BenchmarkScratch(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_FILES"))
	if err != nil {
		n = 1000
	}
	dir := b.TempDir()
	git := func(args ...string) {
		b.Helper()
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			b.Fatalf("git %q: %s", args, out)
		}
	}
	git("init", "-q", "-b", "main", ".")
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("d%d/e%d/f%d.txt", i/1000, i/100%10, i))
		teststand.Fatal(b, os.MkdirAll(filepath.Dir(name), 0o755))
		teststand.Fatal(b, os.WriteFile(name, fmt.Appendf(nil, "file %d\n%0200d\n", i, i), 0o644))
	}
	git("add", "-A")
	git("-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "-q", "-m", "first")
	git("repack", "-adq")
	repo, err := gitstore.Open(dir)
	teststand.Fatal(b, err)
	defer repo.Close()
	base, err := repo.Head(b.Context())
	teststand.Fatal(b, err)
	var ours, theirs time.Duration
	for i := range b.N {
		start := time.Now()
		t, err := Make(b.Context(), repo, filepath.Join(b.TempDir(), "agents"), State{Base: base}, nil)
		teststand.Fatal(b, err)
		ours += time.Since(start)
		teststand.Fatal(b, t.Remove())
		start = time.Now()
		git("worktree", "add", "-q", filepath.Join(b.TempDir(), fmt.Sprint(i)))
		theirs += time.Since(start)
	}
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms-ours")
	b.ReportMetric(float64(theirs.Milliseconds())/float64(b.N), "ms-worktree-add")
	b.ReportMetric(float64(ours)/float64(theirs), "x-git")
}
