package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/report"
)

// tip is the head of the pull request.
func (r *runner) tip() string { return r.s.Pull(site, r.pr).Head }

// report is the one comment that says how things stand.
func (r *runner) report() string {
	r.Helper()
	found := ""
	for _, c := range r.s.Comments(site, r.pr) {
		if !strings.HasSuffix(strings.TrimSpace(c.Body), report.CommentMarker) {
			continue
		}
		if found != "" {
			r.Errorf("there are two reports")
		}
		found = c.Body
	}
	return found
}

// asked returns the fingerprint that people were asked for last.
func (r *runner) asked() string {
	r.Helper()
	for line := range strings.Lines(r.report()) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), approveLine); ok {
			return rest
		}
	}
	r.Fatalf("nobody was asked: %+v", r.s.Comments(site, r.pr))
	return ""
}

// checkOf is the name of a proposal's check run.
func checkOf(fingerprint string) string {
	return "countersign/" + strings.TrimPrefix(fingerprint, "patchset:")[:12]
}

// wantCheck wants a commit to have one check run of a name, with a conclusion.
func (r *runner) wantCheck(commit, name, conclusion string) {
	r.Helper()
	var found []string
	for _, c := range r.s.CheckRuns(site, commit) {
		if c.Name == name {
			found = append(found, c.Conclusion)
		}
	}
	if len(found) != 1 || found[0] != conclusion {
		r.Errorf("the check %s of %.12s is %q, want %s once", name, commit, found, conclusion)
	}
}

// wantApplied wants the proposal's commit on the head, and nothing else.
func (r *runner) wantApplied(head, fingerprint string) {
	r.Helper()
	tip := r.tip()
	if got := r.s.File(r.head, "topic", "feature.txt"); got != after {
		r.Errorf("feature.txt is %q", got)
	}
	if parents := r.s.Git(r.head, "log", "-1", "--format=%P", tip); strings.TrimSpace(parents) != head {
		r.Errorf("the head %s has the parents %s, want %s", tip, parents, head)
	}
	if changed := r.s.Git(r.head, "diff", "--name-only", head, tip); strings.TrimSpace(changed) != "feature.txt" {
		r.Errorf("it changes %s", changed)
	}
	r.wantCheck(head, checkOf(fingerprint), "success")
	r.wantCheck(tip, checkOf(fingerprint), "success")
}

// wantAudit wants a ledger that was pushed and that an auditor has nothing to
// say against.
func (r *runner) wantAudit() {
	r.Helper()
	if r.s.Ref(site, "refs/agent/ledger") == "" {
		r.Fatal("no ledger was pushed")
	}
	r.clone()
	if code, _, stderr := r.run("sync"); code != 0 {
		r.Fatalf("sync: %d\n%s", code, stderr)
	}
	if code, stdout, stderr := r.run("audit"); code != 0 {
		r.Errorf("audit: %d\n%s%s", code, stdout, stderr)
	}
}

// fork puts another pull request in place of the first: the same, of a fork.
func (r *runner) fork(login string) {
	r.head = login + "/site"
	r.s.Fork(site, r.head)
	r.pr = r.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: login, Head: "topic", HeadRepository: r.head, Title: "Text"}).Number
}

// bot puts another bot into the events workflow.
func (r *runner) bot(script string) {
	r.Helper()
	name := filepath.Join(r.dir, ".github", "workflows", eventsFile)
	raw, err := os.ReadFile(name)
	check(r.T, err)
	lines := strings.Split(string(raw), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "      - run: git ls-files") {
			lines[i] = "      - run: " + script
			check(r.T, os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600))
			return
		}
	}
	r.Fatalf("the events workflow has no bot:\n%s", raw)
}
