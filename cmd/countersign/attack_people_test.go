package main

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// TestT08T10T65WhoDoesNotCount: who has too little permission, also for this Policy, who is no human, and what came through
// an app or by mail counts nowhere, and each is told why.
func TestT08T10T65WhoDoesNotCount(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "bots: [Renovate-Account, 4242]\napprovals: {permission: maintain}\n")
	line := "/approve " + a.fingerprint
	a.person("max", "maintain")
	a.person("tim", "triage")
	a.s.User("stranger") // a public repository's everybody
	a.s.CustomRole(site, "reporter", "read")
	a.person("rob", "reporter")
	a.s.User("ghost-to-be")
	a.s.Bot("helper[bot]")
	a.s.Role(site, "helper[bot]", "admin")
	a.person("renovate-account", "admin")
	for _, login := range []string{"ada", "eve", "tim", "stranger", "rob", "ghost-to-be", "helper[bot]"} {
		a.says(login, line)
		a.answers(login, "/approve")
	}
	a.s.DeleteAccount("ghost-to-be")
	a.says("github-actions[bot]", line) // the proposer, with the token that settle has
	a.reviews("helper[bot]", "APPROVED", line)
	a.waits("has read permission, maintain needed", "has triage permission, maintain needed", "has write permission, maintain needed",
		"its author is not known", "its author is not a human account")
	a.says("renovate-account", line)
	at := githubtest.NewComment{Repository: site, Number: a.pr, By: "max", Body: line}
	at.App = "helper[bot]"
	a.s.Comment(at)
	at.App, at.Email = "", true
	a.s.Comment(at)
	a.s.Review(githubtest.NewComment{Repository: site, Number: a.pr, By: "max", State: "APPROVED", Body: line, Email: true})
	a.s.ReviewComment(githubtest.NewComment{
		Repository: site, Number: a.pr, By: "max", Body: "/approve", ReplyTo: a.s.ReviewComments(site, a.pr)[0].ID, Email: true,
	})
	a.waits("the Policy lists its author under bots", "posted through the app", "sent by e-mail")
	a.approves("max")
}

// With a person's token behind the proposal, that person does not approve it.
func TestT10ProposerIsAPerson(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	h.env["INPUT_TOKEN"], h.env["COUNTERSIGN_ACTIONS_TOKEN"] = h.s.Token("ada"), ""
	a := &attack{hub: h, tip: h.s.Ref(site, "refs/heads/topic")}
	h.does("review", "--patch", h.write("fix.patch", greetFix), "--pr", "1")
	h.env["INPUT_TOKEN"] = h.token
	a.fingerprint = h.settle(console.ExitPending, "--no-gate").Transactions[0].Fingerprint
	a.says("ada", "/approve "+a.fingerprint)
	a.s.Rename("ada", "ada2") // the same id
	a.s.User("ada")
	a.s.Role(site, "ada", "none")
	a.settle(console.ExitPending, "--no-gate")
	a.untouched()
	h.says("bob", "/approve "+a.fingerprint)
	if out := a.settle(0, "--no-gate"); !out.says("its author is the proposer") {
		t.Errorf("%+v", out.Transactions)
	}
}

func TestT11LoginReused(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, twoApprovals)
	line := "/approve " + a.fingerprint
	a.says("ada", line)
	a.waits()
	a.s.Rename("ada", "ada-lovelace")
	a.says("ada-lovelace", line) // one person, one vote
	a.waits("this person's vote is counted already")
	a.s.User("ada") // somebody else
	a.says("ada", line)
	a.waits("write needed")
	a.s.Role(site, "ada-lovelace", "read") // it is not the new account's role that is asked for
	a.s.Role(site, "ada", "write")
	a.says("bob", line)
	a.settle(0, "--no-gate") // the new ada and bob
	a.audits()
}

func TestT10BreakGlass(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "approvals: {required: 2, break_glass: [ada]}\n")
	glass := "/approve --break-glass break-glass:" + a.fingerprint
	for _, line := range []string{"/approve --break-glass " + a.fingerprint, glass} {
		a.says("bob", line+" I want it now")
		a.says("ada", line) // no reason
	}
	a.waits(inexact)
	edited := a.says("ada", "wait")
	a.s.Edit(edited, "bob", "/approve --break-glass "+a.fingerprint+" production is down")
	a.waits("edited after posting")
	a.says("ada", "/approve --break-glass "+a.fingerprint+" production is down")
	a.settle(0, "--no-gate")
	if !strings.Contains(a.comment(), "BREAK-GLASS") && !strings.Contains(strings.ToLower(a.comment()), "break-glass") || !strings.Contains(a.comment(), "production is down") {
		t.Errorf("the comment hides it:\n%s", a.comment())
	}
	if got := a.check("countersign/"+strings.TrimPrefix(a.fingerprint, "patchset:")[:12], a.s.Ref(site, "refs/heads/topic")); !strings.HasPrefix(got.Title, "BREAK-GLASS") {
		t.Errorf("the check hides it: %+v", got)
	}
	a.audits()
}
