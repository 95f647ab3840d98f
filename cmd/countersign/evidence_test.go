package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/evidence"
)

// BenchmarkEvidence makes the evidence of 1,000 repositories with ten approved changes each, and one
// that nobody was asked about, from an empty cache and then again. The limit is 15 minutes.
func BenchmarkEvidence(b *testing.B) {
	const repositories, changes = 1000, 10
	program, root := ourProgram(b), b.TempDir()
	first := filepath.Join(root, "0")
	do := func(args ...string) string {
		b.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = first
		out, err := cmd.Output()
		if err != nil {
			b.Fatalf("%q: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	check(b, os.Mkdir(first, 0o777))
	do("git", "init", "-q", "-b", "main")
	do("git", "config", "user.name", "Ada")
	do("git", "config", "user.email", "ada@example.org")
	do("git", "commit", "-q", "--allow-empty", "-m", "first")
	patch := filepath.Join(root, "patch")
	for i := range changes {
		check(b, os.WriteFile(patch, []byte(addition(fmt.Sprintf("file%d.txt", i), "text\n")), 0o666))
		do(program, "review", "--patch", patch)
		id := do(program, "list", "--quiet", "--open")
		do(program, "approve", id)
		do(program, "run", id)
		do("git", "add", "-A")
		do("git", "commit", "-q", "-m", "change")
	}
	do("git", "commit", "-q", "--allow-empty", "-m", "nobody was asked")
	do("git", "gc", "-q")
	var list strings.Builder
	for i := range repositories {
		dir := filepath.Join(root, fmt.Sprint(i))
		if i > 0 {
			check(b, os.CopyFS(dir, os.DirFS(first)))
		}
		fmt.Fprintf(&list, "acme/r%d %s\n", i, dir)
	}
	check(b, os.WriteFile(filepath.Join(root, "list"), []byte(list.String()), 0o666))
	run := func(n int) time.Duration {
		var out bytes.Buffer
		cmd := exec.Command(program, "-C", root, "evidence", "--from", "2020-01-01", "--to", "2099-12-31", "--repos", "list", "--cache", "cache", "--out", fmt.Sprint("out", n), "--json")
		cmd.Stdout = &out
		began := time.Now()
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
			b.Fatalf("exit code %d: %v", cmd.ProcessState.ExitCode(), err)
		}
		took := time.Since(began)
		var r evidence.Report
		check(b, json.Unmarshal(out.Bytes(), &r))
		if got := r.Totals[0].Count; got != repositories*(changes+1) || !r.Complete {
			b.Fatalf("%d changes, complete: %v", got, r.Complete)
		}
		return took
	}
	var fresh, again time.Duration
	for b.Loop() {
		check(b, os.RemoveAll(filepath.Join(root, "cache")))
		fresh, again = run(2*b.N), run(2*b.N+1)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(fresh.Seconds(), "s-first")
	b.ReportMetric(again.Seconds(), "s-again")
}
