package main

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/report"
)

// release makes a branch with a Policy of its own, and the pull request one to
// that branch.
func (a *attack) release(policy string) {
	a.Helper()
	a.s.Push(githubtest.NewCommit{Repository: site, Branch: "release", By: "ada", Message: "Policy", Files: map[string]string{
		".github/countersign.yml": "version: 1\n" + policy,
	}})
	a.s.Push(githubtest.NewCommit{Repository: site, Branch: "fix", From: "release", By: "bob", Message: "Fix", Files: map[string]string{"fix.txt": "fix\n"}})
	a.pr = a.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "fix", Base: "release", Title: "Fix"}).Number
}

// The Policy of the branch that a pull request is to may ask for more, of a
// proposal as of the pull request itself, and never for less.
func TestT20BaseBranchOfThePullRequest(t *testing.T) {
	long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		base    string
		pending bool
	}{
		"stricter": {"approvals: {required: 2}\n", true},
		"laxer":    {"approvals: {required: 1, permission: read}\nbots: []\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &attack{hub: newHub(t)}
			a.policy("gate: {bases: [main, release]}\n")
			a.release(c.base)
			a.guards(report.CheckActionRequired)
			a.reviews("eve", "APPROVED", "") // may read
			a.guards(report.CheckActionRequired, "has read permission, write needed")
			a.reviews("ada", "APPROVED", "")
			want := report.CheckSuccess
			if c.pending {
				want = report.CheckActionRequired
			}
			a.guards(want)
			if c.pending {
				a.person("carol", "write")
				a.reviews("carol", "APPROVED", "")
				a.guards(report.CheckSuccess)
			}
			a.audits()
		})
	}
}

// A branch whose Policy cannot be read lets nothing pass.
func TestT20BaseBranchUnreadable(t *testing.T) {
	t.Parallel()
	a := &attack{hub: newHub(t)}
	a.policy("gate: {bases: [main, release]}\n")
	a.release("approvals: 3\n")
	a.event("pull_request_target", map[string]any{"action": "opened", "pull_request": map[string]any{"number": a.pr}})
	a.guards(report.CheckFailure)
}

// TestNewHeadHasItsChecks: an apply moves the head, and what is said of the pull
// request's own diff is said on the new one.
func TestNewHeadHasItsChecks(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "")
	_, fingerprint := a.propose(greetFix)
	a.says("ada", "/approve "+fingerprint)
	out := a.guards(report.CheckActionRequired)
	head := a.s.Pull(site, a.pr).Head
	if a.s.File(site, "topic", "greet.txt") != "one\nhello, world\nthree\n" {
		t.Fatal("not applied")
	}
	for _, tx := range out.Transactions {
		if got := a.check("countersign/"+strings.TrimPrefix(tx.Fingerprint, "patchset:")[:12], head); got.Name == "" {
			t.Errorf("%s has no check run on the new head", tx.ID)
		}
	}
}
