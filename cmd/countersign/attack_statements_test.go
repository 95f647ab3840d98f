package main

import (
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

const twoApprovals = "approvals: {required: 2}\n"

func TestT01EditedAfterItCounted(t *testing.T) {
	t.Parallel()
	a := newAttack(t, twoApprovals)
	a.person("dan", "write")
	first := a.says("ada", "/approve "+a.fingerprint)
	a.waits()
	a.s.Edit(first, "bob", "/approve "+a.fingerprint+"\n")
	a.says("dan", "/approve "+a.fingerprint)
	a.waits("its comment was edited")
	a.s.Delete(first)
	a.waits("its comment is gone")
	a.approves("bob")
}

// TestT01Hidden: what readers of the pull request do not see approves nothing.
func TestT01Hidden(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	comment, answer := a.says("ada", "/approve "+a.fingerprint), a.answers("ada", "/approve")
	review := a.reviews("ada", "COMMENTED", "/approve "+a.fingerprint)
	for _, id := range []int64{comment, answer, review} {
		a.s.Hide(id, true)
	}
	out := a.waits("is hidden")
	if n := len(out.Transactions[0].Verdict.Decisions); n != 3 {
		t.Errorf("%d decisions are told, want 3", n)
	}
	a.s.Hide(comment, false)
	a.settle(0, "--no-gate")
}

func TestT02OwnEditAfterPush(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	old := a.says("bob", "nice work")
	a.pushes("bob", "topic", "other.txt", "backdoor\n")
	a.tip = a.s.Ref(site, "refs/heads/topic")
	a.s.Edit(old, "bob", "/approve "+a.fingerprint)
	a.waits("edited after posting")
	a.happens(githubtest.Event{Name: "issue_comment", Action: "edited", ID: old})
	a.waits("edited after posting")
}

func TestT03DenialTakenBack(t *testing.T) {
	long(t)
	t.Parallel()
	for name, hide := range map[string]func(a *attack, id int64){
		"edited into an approval": func(a *attack, id int64) { a.s.Edit(id, "ada", "/approve "+a.fingerprint) },
		"edited away":             func(a *attack, id int64) { a.s.Edit(id, "bob", "never mind") },
		"history erased, event tells": func(a *attack, id int64) {
			a.s.Edit(id, "bob", "never mind")
			a.happens(githubtest.Event{Name: "issue_comment", Action: "edited", ID: id})
			a.s.EraseHistory(id)
		},
		"deleted, event tells": func(a *attack, id int64) {
			a.s.Delete(id)
			a.happens(githubtest.Event{Name: "issue_comment", Action: "deleted", ID: id})
		},
		"hidden": func(a *attack, id int64) { a.s.Hide(id, true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttack(t, "")
			hide(a, a.says("ada", "/deny "+a.fingerprint+" no"))
			a.says("bob", "/approve "+a.fingerprint)
			a.isDenied()
		})
	}
}

// A denial that is recorded is final for these bytes, whatever becomes of its
// comment and whoever proposes them again.
func TestT03DenialIsFinal(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "")
	bundle := a.bundle(greetFix) // before it was denied
	id := a.answers("ada", "/deny no")
	a.isDenied()
	a.s.Delete(id)
	a.says("bob", "/approve "+a.fingerprint)
	a.settle(console.ExitDenied, "--no-gate", "--bundle", bundle)
	a.settle(0, "--no-gate") // nothing is open
	a.untouched()
	a.audits()
}

// An approval is of the patch that it names, of several that wait beside each
// other as of one that took another one's place.
func TestT06ApprovalOfAnotherPatch(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	const otherFix = "diff --git a/other.txt b/other.txt\n--- a/other.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-other\n+another\n"
	other, otherFingerprint := a.propose(otherFix)
	a.says("ada", "/approve "+otherFingerprint[:len(otherFingerprint)-1]+"0")
	a.says("ada", "/approve "+a.fingerprint+"\n/approve "+otherFingerprint)
	out := a.settle(console.ExitPending, "--no-gate")
	if got := a.s.File(site, "topic", "greet.txt"); got != "one\nhello, world\nthree\n" || a.status(other) != "awaiting_approval" {
		t.Errorf("greet.txt is %q, the other %s", got, a.status(other))
	}
	if !out.says("names another patch") {
		t.Errorf("%+v", out.Transactions)
	}
	a.says("ada", "/approve "+otherFingerprint)
	a.settle(0, "--no-gate")
	if got := a.s.File(site, "topic", "other.txt"); got != "another\n" || a.status(other) != "completed" {
		t.Errorf("other.txt is %q, the other %s", got, a.status(other))
	}
	a.audits()
}

func TestT12OnePersonOneVote(t *testing.T) {
	t.Parallel()
	a := newAttack(t, twoApprovals)
	a.says("ada", "/approve "+a.fingerprint)
	a.says("ada", "/approve "+a.fingerprint)
	a.answers("ada", "/approve")
	a.reviews("ada", "APPROVED", "/approve "+a.fingerprint)
	a.waits("this person's vote is counted already")
	a.approves("bob")
}
