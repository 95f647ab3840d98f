package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// A bundle that says where it belongs is refused; one from a fork is its
// author's, whoever made it.
func TestT68BundleClaims(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "")
	good, err := os.ReadFile(a.bundle(strings.Replace(greetFix, "hello, world", "goodbye", 1)))
	check(t, err)
	for _, claim := range []string{"pull_request", "repository", "proposer", "transaction_id", "fingerprint", "approvals"} {
		var doc map[string]any
		check(t, json.Unmarshal(good, &doc))
		doc[claim] = "2"
		raw, err := json.Marshal(doc)
		check(t, err)
		code, stdout, stderr := a.run("settle", "--json", "--pr", "1", "--no-gate", "--bundle", a.write("bundle.json", string(raw)))
		out := a.read(stdout)
		if code == 0 || code == console.ExitPending || code == console.ExitDenied || len(out.Transactions) != 1 || len(out.Notes) == 0 {
			t.Errorf("%s: exit code %d: %+v %s", claim, code, out, stderr)
		}
	}
	a.untouched()
}

// TestT68BundleOfAFile: who asked for what a file hands over is the event's sender, whatever the file says.
func TestT68BundleOfAFile(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	bundle := h.bundle(greetFix)
	h.happens(githubtest.Event{Name: "issue_comment", Action: "created", ID: h.says("ada", "please say hello to the world")})
	code, stdout, stderr := h.run("settle", "--json", "--no-gate", "--bundle", bundle)
	var out settled
	if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != console.ExitPending || len(out.Transactions) != 1 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if _, shown, errs := h.run("show", out.Transactions[0].ID, "--json"); !strings.Contains(shown, `"login":"ada"},"source":"actions.sender"`) {
		t.Errorf("%s%s", shown, errs)
	}
}

// An approval is of one transaction: the same bytes, proposed once more after
// they were applied and reverted, are asked for once more.
func TestT64OldApprovalOfTheSameBytes(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	bundle := a.bundle(greetFix)
	a.approves("ada")
	a.pushes("bob", "topic", "greet.txt", "one\nhello\nthree\n") // it was a mistake
	tip := a.s.Ref(site, "refs/heads/topic")
	a.later()
	code, stdout, stderr := a.run("settle", "--json", "--pr", "1", "--no-gate", "--bundle", bundle)
	if got := a.s.Ref(site, "refs/heads/topic"); got != tip || code != console.ExitPending {
		t.Errorf("exit code %d, the branch moved from %s to %s: %s%s", code, tip, got, stdout, stderr)
	}
}

// What a propose job holds is enough for nothing.
func TestT66ReadOnlyToken(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "")
	a.says("ada", "/approve "+a.fingerprint)
	ledger, said := a.s.Ref(site, "refs/agent/ledger"), len(a.s.Comments(site, a.pr))
	a.env["INPUT_TOKEN"] = a.s.ActionsToken(site, "contents:read", "pull_requests:read", "issues:read", "checks:read")
	for _, args := range [][]string{{"settle", "--pr", "1"}, {"settle", "--pr", "1", "--bundle", a.bundle(greetFix)}, {"apply", a.tx}, {"gate", a.tx}, {"close", a.tx}} {
		if code, stdout, stderr := a.run(args...); code == 0 {
			t.Errorf("%v: %s%s", args, stdout, stderr)
		}
	}
	a.untouched()
	if a.s.Ref(site, "refs/agent/ledger") != ledger || len(a.s.Comments(site, a.pr)) != said {
		t.Error("something was written")
	}
}
