package gitstore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// manyFiles makes a repository of 10,000 small files in 200 directories and a
// patch that changes, adds and deletes among all of them.
func manyFiles(b *testing.B) (dir string, diff []byte) {
	b.Helper()
	dir = b.TempDir()
	write := func(i int, text string) {
		file := filepath.Join(dir, fmt.Sprintf("d%03d", i%200), fmt.Sprintf("f%05d.txt", i))
		if text == "" {
			fatal(b, os.Remove(file))
			return
		}
		fatal(b, os.MkdirAll(filepath.Dir(file), 0o777))
		fatal(b, os.WriteFile(file, []byte(text), 0o666))
	}
	body := func(i int) string {
		return fmt.Sprintf("head %d\none\ntwo\nthree\nfour\nfive\nsix\nseven\ntail %d\n", i, i)
	}
	for i := range 9000 {
		write(i, body(i))
	}
	gitRun(b, dir, nil, "init", "-q", "-b", "main")
	gitRun(b, dir, nil, "add", "-A")
	gitRun(b, dir, nil, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", "base")
	gitRun(b, dir, nil, "repack", "-adq")
	for i := range 10000 {
		switch {
		case i >= 9000:
			write(i, body(i))
		case i%10 == 0:
			write(i, "")
		default:
			write(i, body(i)+"more\n")
		}
	}
	gitRun(b, dir, nil, "add", "-A")
	diff = gitRun(b, dir, nil, "diff", "--cached", "--no-renames")
	gitRun(b, dir, nil, "reset", "-q", "--hard")
	return dir, diff
}

func gitRun(b testing.TB, dir string, stdin []byte, args ...string) []byte {
	b.Helper()
	return bytes.TrimSpace([]byte(teststand.Git(b, dir, string(stdin), args...)))
}

// BenchmarkBranchApply takes a 10,000-file patch from its bytes to a commit on
// a branch, beside git apply --cached, write-tree and commit-tree. Each gets a
// fresh copy of the repository.
func BenchmarkBranchApply(b *testing.B) {
	dir, diff := manyFiles(b)
	var ours, theirs time.Duration
	for range b.N {
		b.StopTimer()
		mine, git := copyRepo(b, dir), copyRepo(b, dir)
		b.StartTimer()
		start := time.Now()
		want := gitApply(b, git, diff)
		theirs += time.Since(start)
		start = time.Now()
		got := branchApply(b, mine, diff)
		ours += time.Since(start)
		b.StopTimer()
		if tree := gitRun(b, mine, nil, "rev-parse", got+"^{tree}"); !bytes.Equal(tree, want) {
			b.Fatalf("tree %s, git's is %s", tree, want)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/ours")
	b.ReportMetric(float64(theirs.Milliseconds())/float64(b.N), "ms/git")
	b.ReportMetric(float64(ours)/float64(theirs), "x-git")
}

func copyRepo(b *testing.B, dir string) string {
	b.Helper()
	to := b.TempDir()
	fatal(b, os.CopyFS(to, os.DirFS(dir)))
	gitRun(b, to, nil, "update-index", "-q", "--refresh")
	return to
}

func gitApply(b *testing.B, dir string, diff []byte) (tree []byte) {
	gitRun(b, dir, append(diff, '\n'), "apply", "--cached", "-")
	tree = gitRun(b, dir, nil, "write-tree")
	commit := gitRun(b, dir, nil, "commit-tree", "-p", "HEAD", "-m", "x", string(tree))
	gitRun(b, dir, nil, "update-ref", "refs/heads/fixes", string(commit))
	return tree
}

func branchApply(b *testing.B, dir string, diff []byte) string {
	fail := func(err error) {
		fatal(b, err)
	}
	ctx := b.Context()
	repo, err := gitstore.Open(dir)
	fail(err)
	head, err := repo.Head(ctx)
	fail(err)
	tree, err := repo.Tree(ctx, head)
	fail(err)
	parsed, err := gitpatch.Parse(append(diff, '\n'))
	fail(err)
	set, err := parsed.Resolve(tree)
	fail(err)
	commit, err := repo.BuildCommit(ctx, head, set.Files(), code.Commit{Author: "t", Email: "t@localhost", Message: "x\n"})
	fail(err)
	fail(repo.MoveRef(ctx, "refs/heads/fixes", "", commit))
	return commit
}
