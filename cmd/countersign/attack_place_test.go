package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/report"
)

// another is a second repository with a pull request of the same number.
func (a *attack) another() {
	a.s.Repository(githubtest.NewRepository{Name: "acme/other", Files: map[string]string{"greet.txt": "one\nhello\nthree\n"}})
	for _, login := range []string{"eve", "bob"} {
		a.s.Role("acme/other", login, "admin")
	}
	a.s.Push(githubtest.NewCommit{Repository: "acme/other", Branch: "topic", By: "eve", Files: map[string]string{"feature.txt": "feature\n"}, Message: "feature"})
	a.s.PullRequest(githubtest.NewPullRequest{Repository: "acme/other", By: "eve", Head: "topic", Title: "Feature"})
}

// TestT15T17SaidElsewhere: what is said in another repository or on another pull request counts for nothing, and what the one
// comment that reports was made to ask for neither; the next settle puts that right.
func TestT15T17SaidElsewhere(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	a.another()
	said := a.s.Comment(githubtest.NewComment{Repository: "acme/other", Number: 1, By: "bob", Body: "/approve " + a.fingerprint}).ID
	a.pushes("bob", "second", "second.txt", "second\n")
	second := a.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "second", Title: "Second"}).Number
	a.s.Comment(githubtest.NewComment{Repository: site, Number: second, By: "ada", Body: "/approve " + a.fingerprint})
	was, other := a.comment(), strings.Replace(a.fingerprint, a.fingerprint[20:30], "0123456789", 1)
	for _, c := range a.s.Comments(site, a.pr) {
		a.s.Edit(c.ID, "bob", strings.ReplaceAll(was, a.fingerprint, other))
	}
	a.says("ada", "/approve "+other)
	a.waits("names another patch")
	if now := a.comment(); strings.Contains(now, other) || !strings.Contains(now, "/approve "+a.fingerprint) {
		t.Errorf("it says\n%s", now)
	}
	code, stdout, stderr := a.run("settle", a.tx, "--pr", "2", "--no-gate") // a transaction of the other one
	a.untouched()
	if got := a.status(a.tx); got != "awaiting_approval" {
		t.Errorf("%d %s: %s%s", code, got, stdout, stderr)
	}
	for _, command := range []string{"gate", "apply", "run"} {
		if code, stdout, stderr := a.run(command, a.tx); code == 0 {
			t.Errorf("%s: %s%s", command, stdout, stderr)
		}
	}
	// The event is of there, the job is of here.
	a.happens(githubtest.Event{Name: "issue_comment", Action: "created", Repository: "acme/other", ID: said})
	a.settle(console.ExitRefused, "--no-gate")
	a.untouched()
	a.event("workflow_dispatch", nil)
	a.approves("ada")
}

// Somebody carries the ledger over to a repository where they may approve.
func TestT15LedgerOfAnotherRepository(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	a.another()
	a.git(a.dir, "fetch", "-q", "origin", "refs/agent/ledger:refs/carried")
	other := filepath.Join(t.TempDir(), "other")
	a.git("", "clone", "-q", a.s.URL+"/acme/other.git", other)
	a.git(other, "fetch", "-q", a.dir, "refs/carried:refs/carried")
	token := a.s.ActionsToken("acme/other", jobRights...)
	a.git(other, "-c", "http.extraHeader=Authorization: Bearer "+token, "push", "-q", "origin", "refs/carried:refs/agent/ledger")
	a.s.Comment(githubtest.NewComment{Repository: "acme/other", Number: 1, By: "bob", Body: "/approve " + a.fingerprint})
	tip := a.s.Ref("acme/other", "refs/heads/topic")
	a.dir, a.env["INPUT_TOKEN"], a.env["GITHUB_REPOSITORY"] = other, token, "acme/other"
	for _, args := range [][]string{{"settle", "--pr", "1", "--no-gate"}, {"settle", a.tx, "--no-gate"}, {"gate", a.tx}, {"apply", a.tx}, {"settle", "--all"}} {
		code, stdout, stderr := a.run(args...)
		if args[0] != "settle" && code == 0 {
			t.Errorf("%v: %s%s", args, stdout, stderr)
		}
	}
	if got := a.s.Ref("acme/other", "refs/heads/topic"); got != tip {
		t.Errorf("the branch moved from %s to %s", tip, got)
	}
	for _, c := range a.s.CheckRuns("acme/other", "") {
		if c.Name != report.LedgerCheckName(ledgerRef) { // which says where that ledger is, whoever made it
			t.Errorf("check %s %s", c.Name, c.Conclusion)
		}
	}
}

// Edited after the bare approval was recorded, and before what it allows is done.
func TestT17RequestEditedLater(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, twoApprovals)
	request := a.s.ReviewComments(site, a.pr)[0]
	a.answers("ada", "/approve")
	a.waits()
	a.s.Edit(request.ID, "bob", "Approve nothing but a typo?")
	a.says("bob", "/approve "+a.fingerprint)
	a.waits("the request it answers was changed after it was posted")
}

func TestT17RequestForged(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	request := a.s.ReviewComments(site, a.pr)[0]
	forged := func(by, body string) {
		first := a.s.ReviewComment(githubtest.NewComment{Repository: site, Number: a.pr, By: by, Body: body, Path: "feature.txt"}).ID
		a.s.ReviewComment(githubtest.NewComment{Repository: site, Number: a.pr, By: "ada", Body: "/approve", ReplyTo: first})
	}
	forged("eve", request.Body)
	forged("github-actions[bot]", "Approve a typo?\n"+report.RequestMarker(a.tx)) // another workflow has the same token
	a.waits("is not in the thread of the request")
	a.answers("ada", "what is this?")
	a.s.Delete(request.ID) // so that the first comment of the thread is another one
	for _, c := range a.s.ReviewComments(site, a.pr) {
		if c.Body == "what is this?" {
			a.s.ReviewComment(githubtest.NewComment{Repository: site, Number: a.pr, By: "ada", Body: "/approve", ReplyTo: c.ID})
		}
	}
	a.waits("is not in the thread of the request")
}

// Likewise where the other one took the place of the first: what is said in its
// thread is still said of the first, and a denial sticks.
func TestT15InTheThreadOfTheOneBefore(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	first := a.s.ReviewComments(site, a.pr)[0].ID
	old := strings.TrimPrefix(a.fingerprint, "patchset:")
	bundle := a.bundle(greetFix)
	a.proposes("goodbye")
	if check := a.check("countersign/"+old[:12], a.tip); !strings.HasPrefix(check.Title, "Superseded by tx_") || check.Conclusion != "neutral" || !strings.Contains(a.comment(), "Superseded by") {
		t.Errorf("the check is %+v, the comment\n%s", check, a.comment())
	}
	denial := a.answersTo(first, "ada", "/deny never")
	a.settle(console.ExitDenied, "--no-gate")
	if got := a.status(a.tx); got != "awaiting_approval" {
		t.Errorf("the other is %s", got)
	}
	a.s.Delete(denial)
	for range 2 { // and once it was told, it is not told again
		if check := a.check("countersign/"+old[:12], a.tip); !strings.HasPrefix(check.Title, "Denied") {
			t.Errorf("the check is %+v", check)
		}
		a.settle(console.ExitPending, "--no-gate")
	}
	a.settle(console.ExitDenied, "--no-gate", "--bundle", bundle)
	a.untouched()
	a.audits()
}
