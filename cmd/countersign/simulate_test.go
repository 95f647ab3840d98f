package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/setup"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// mergedWorld makes a repository of 2,000 files with n pull requests, each of three files of 200
// lines, that were squashed one after the other, and the file of what a forge said of them.
func mergedWorld(b *testing.B, n int) (dir, cache string) {
	b.Helper()
	dir, cache = b.TempDir(), filepath.Join(b.TempDir(), "merged.json")
	git := func(in []byte, args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git(nil, "init", "-q", "-b", "main")
	git(nil, "remote", "add", "origin", "https://example.org/acme/site")
	var s bytes.Buffer
	text := func(file, version int) string {
		lines := make([]string, 200)
		for i := range lines {
			lines[i] = fmt.Sprintf("line %d of file %d", i, file)
			if i%40 == 7 {
				lines[i] += fmt.Sprintf(", version %d", version)
			}
		}
		return strings.Join(lines, "\n") + "\n"
	}
	put := func(file, version int) {
		content := text(file, version)
		fmt.Fprintf(&s, "M 100644 inline dir%d/sub%d/file%d.txt\ndata %d\n%s\n", file%20, file%7, file, len(content), content)
	}
	commit := func(ref, from string, at int) {
		fmt.Fprintf(&s, "commit %s\ncommitter A <a@example.org> %d +0000\ndata %d\n%s\n", ref, 1767225600+at, len(ref), ref)
		if from != "" {
			fmt.Fprintf(&s, "from %s\n", from)
		}
	}
	commit("refs/heads/main", "", 0)
	for file := range 2000 {
		put(file, 0)
	}
	for i := 1; i <= n; i++ {
		commit(fmt.Sprintf("refs/pulls/%d", i), "refs/heads/main", i)
		for k := range 3 {
			put((i*3+k)%2000, i)
		}
		commit("refs/heads/main", "", i)
		for k := range 3 {
			put((i*3+k)%2000, i)
		}
		fmt.Fprintf(&s, "\nreset refs/bases/%d\nfrom refs/heads/main\n\n", i)
	}
	git(s.Bytes(), "fast-import", "--quiet")
	ids := map[string]string{}
	for line := range strings.Lines(git(nil, "for-each-ref", "--format=%(refname) %(objectname)")) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		ids[name] = id
	}
	file := &setup.MergedPulls{Schema: "countersign/merged/1", Repository: "https://example.org/acme/site"}
	ada := ledger.Actor{Kind: "user", ID: "1", Login: "ada"}
	for i := 1; i <= n; i++ {
		head := ids[fmt.Sprintf("refs/pulls/%d", i)]
		file.Pulls = append(file.Pulls, setup.MergedPull{
			MergedAt: time.Date(2026, 1, 2, 0, 0, i, 0, time.UTC).Format(time.RFC3339), ReadAt: "2026-01-03T00:00:00Z", Access: map[string]approval.Access{"1": {Permission: "write"}},
			PullRequest: forge.PullRequest{
				Number: i, State: forge.PullRequestMerged, Title: "Work", Author: ledger.Actor{Kind: "user", ID: "2", Login: "eve"}, Committers: []ledger.Actor{}, Paths: []string{},
				Head: forge.Side{Commit: head}, Base: forge.Side{Commit: ids[fmt.Sprintf("refs/bases/%d", i)]}, MergeCommit: ids[fmt.Sprintf("refs/bases/%d", i)],
			},
			Statements: []approval.Statement{{Kind: approval.KindReview, ID: fmt.Sprint(i), Author: ada, State: approval.ReviewApproved, Commit: head, CreatedAt: "2026-01-01T12:00:00Z"}},
		})
	}
	check(b, file.Save(cache))
	return dir, cache
}

// BenchmarkSimulate: 1,000 pull requests, once fetched, against a Policy with rules for paths.
func BenchmarkSimulate(b *testing.B) {
	dir, cache := mergedWorld(b, 1000)
	name := filepath.Join(b.TempDir(), "policy.yml")
	check(b, os.WriteFile(name, []byte("version: 1\napprovals: {required: 1}\nprotected:\n  - {paths: [/dir1/, \"*.tf\"], required: 2}\n"), 0o644))
	for b.Loop() {
		var out, errs bytes.Buffer
		app := console.Process{
			Args: []string{"-C", dir, "policy", "simulate", "--policy", name, "--cache", cache, "--json"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
			Getenv: func(string) string { return "" }, Now: time.Now, Entropy: rand.Reader,
		}
		if code := Main(app); code != 0 {
			b.Fatalf("exit code %d: %s", code, errs.String())
		}
		if !strings.Contains(out.String(), `"counts":{"asks_less":0,"asks_more":150,"blocked":0,"lets_through":0,"none":0,"unknown":850}`) {
			b.Fatalf("%.600s", out.String())
		}
	}
}
