package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// BenchmarkBigRepository compares whole processes, which take turns, in
// repositories of many files: a patch to three of them with git apply, and the
// working tree in which they are changed with git status. It gives medians, and
// the program's start beside them. The limits are 1.5 and 1.2 times as long as
// git. COUNTERSIGN_BIG sets other numbers of files.
func BenchmarkBigRepository(b *testing.B) {
	for _, n := range strings.Fields(cmp.Or(os.Getenv("COUNTERSIGN_BIG"), "1000 100000")) {
		files := 0
		_, err := fmt.Sscan(n, &files)
		check(b, err)
		dir := b.TempDir()
		patch := bigRepository(b, dir, files)
		program := ourProgram(b)
		b.Run("review/"+n, func(b *testing.B) {
			besideGit(b, []string{program, "-C", dir, "review", "--dry-run", "--patch", patch}, []string{"git", "-C", dir, "apply", "--check", "--index", patch})
		})
		runGit(b, dir, "apply", patch)
		b.Run("worktree/"+n, func(b *testing.B) {
			besideGit(b, []string{program, "-C", dir, "review", "--dry-run", "--worktree"}, []string{"git", "-C", dir, "status", "--porcelain"})
		})
	}
}

// BenchmarkList lists the newest 50 of 10,000 transactions of one day, beside
// git log of as many commits; the limit is 100 ms.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	repo, err := gitstore.Init(dir)
	check(b, err)
	commitOne(b, dir)
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	check(b, err)
	entries, err := storetest.LivesOf(1, slices.Repeat([]storetest.Life{storetest.Asked}, 10_000)...)
	check(b, err)
	_, err = l.Append(b.Context(), "", entries...)
	check(b, err)
	program := ourProgram(b)
	for _, flags := range [][]string{{}, {"--open"}, {"--all"}} {
		b.Run("list"+strings.Join(flags, ""), func(b *testing.B) {
			besideGit(b, append([]string{program, "-C", dir, "list"}, flags...), []string{"git", "-C", dir, "log", "-50", "--stat", "refs/agent/ledger"})
		})
	}
}

// besideGit runs the program, git and the program's start in turn.
func besideGit(b *testing.B, ours, git []string) {
	commands := [][]string{ours, git, {ours[0], "version"}}
	times := make([][]time.Duration, len(commands))
	for b.Loop() {
		for i, args := range commands {
			cmd := exec.Command(args[0], args[1:]...)
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %v\n%.2000s", args, err, out)
			}
			times[i] = append(times[i], time.Since(began))
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return float64(times[i][len(times[i])/2].Microseconds()) / 1000
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(0), "ms-ours")
	b.ReportMetric(median(1), "ms-git")
	b.ReportMetric(median(2), "ms-start")
	b.ReportMetric(median(0)/median(1), "x-git")
}

// ourProgram is this test's binary under the program's name.
func ourProgram(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "countersign")
	self, err := os.ReadFile(os.Args[0])
	check(b, err)
	check(b, teststand.WriteFile(program, self))
	return program
}

// bigRepository makes a repository of so many files, twenty to a directory, and
// a patch to three of them.
func bigRepository(b *testing.B, dir string, files int) (patch string) {
	b.Helper()
	name := func(i int) string { return fmt.Sprintf("d%03d/e%02d/f%07d.txt", i/1000, i/20%50, i) }
	runGit(b, dir, "init", "-q", "-b", "main")
	for i := range files {
		file := filepath.Join(dir, name(i))
		if i%20 == 0 {
			check(b, os.MkdirAll(filepath.Dir(file), 0o777))
		}
		var text bytes.Buffer
		for line := range 10 {
			fmt.Fprintf(&text, "line %d of file %d\n", line, i)
		}
		check(b, os.WriteFile(file, text.Bytes(), 0o666))
	}
	runGit(b, dir, "add", "-A")
	runGit(b, dir, "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "gc.auto=0", "commit", "-q", "-m", "base")
	for _, i := range []int{1, files / 2, files - 1} {
		file := filepath.Join(dir, name(i))
		old, err := os.ReadFile(file)
		check(b, err)
		check(b, os.WriteFile(file, bytes.Replace(old, []byte("line 5"), []byte("LINE 5"), 1), 0o666))
	}
	patch = filepath.Join(b.TempDir(), "three.patch")
	check(b, os.WriteFile(patch, runGit(b, dir, "diff"), 0o666))
	runGit(b, dir, "checkout", "-q", ".")
	time.Sleep(1100 * time.Millisecond) // so that no file is as young as the index
	runGit(b, dir, "update-index", "--refresh", "--force-write-index")
	return patch
}

func runGit(b *testing.B, dir string, args ...string) []byte {
	b.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("git %v: %v", args, err)
	}
	return out
}
