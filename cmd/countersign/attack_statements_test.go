package main

import (
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

const twoApprovals = "approvals: {required: 2}\n"

// TestT01T02Edited: what was edited counts no more, whoever did it, and what was edited into an approval never.
func TestT01T02Edited(t *testing.T) {
	t.Parallel()
	a := newAttack(t, twoApprovals)
	old := a.says("bob", "nice work")
	a.s.Edit(old, "bob", "/approve "+a.fingerprint)
	a.waits("edited after posting")
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
