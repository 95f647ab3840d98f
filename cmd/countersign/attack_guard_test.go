package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/report"
)

// newGuard is an attack on a pull request's own diff, which the check
// "countersign" guards.
func newGuard(t *testing.T, policy string) *attack {
	t.Helper()
	h := newHub(t)
	if policy != "" {
		h.policy(policy)
	}
	a := &attack{hub: h}
	a.happens(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: a.pr})
	a.guards(report.CheckActionRequired)
	return a
}

// exits are the exit codes that go with the check's conclusions.
var exits = map[string][]int{
	report.CheckSuccess: {0}, report.CheckActionRequired: {console.ExitPending, 0}, report.CheckFailure: {console.ExitFailed, console.ExitRefused, console.ExitIO, console.ExitPending, console.ExitDenied},
}

// guards settles the pull request and fails the test unless the check on its
// head concludes so, and reasons are told in --json and in the comment.
func (a *attack) guards(conclusion string, reasons ...string) settled {
	a.Helper()
	out := a.settledAs(conclusion)
	if len(out.Transactions) > 0 {
		last := out.Transactions[len(out.Transactions)-1]
		a.tx, a.fingerprint = last.ID, last.Fingerprint
	}
	head := a.s.Pull(site, a.pr).Head
	if got := a.check("countersign", head); got.Conclusion != conclusion {
		a.Errorf("the check on %s is %+v, want %s", head, got, conclusion)
	}
	for _, reason := range reasons {
		if !out.says(reason) && !strings.Contains(strings.Join(out.Notes, "\n"), reason) || !strings.Contains(a.comment(), reason) {
			a.Errorf("%q is not told: %+v\n%s", reason, out, a.comment())
		}
	}
	return out
}

func (a *attack) settledAs(conclusion string) settled {
	a.Helper()
	code, stdout, stderr := a.run("settle", "--json", "--pr", fmt.Sprint(a.pr))
	if !slices.Contains(exits[conclusion], code) {
		a.Errorf("exit code %d for %s: %s%s", code, conclusion, stdout, stderr)
	}
	return a.read(stdout)
}

const (
	passes = report.CheckSuccess
	asks   = report.CheckActionRequired
	broken = report.CheckFailure
)

// A runner whose clock is ahead of the forge's takes the forge's time, by which answers are dated.
func TestT56RunnerAhead(t *testing.T) {
	long(t)
	t.Parallel()
	a := &attack{hub: newHub(t)}
	a.ahead = 50 * time.Second // the program's alone
	a.happens(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: a.pr})
	a.guards(asks)
	a.s.SetNow(func() time.Time { return time.Now().Add(3 * time.Second) })
	a.s.Review(githubtest.NewComment{Repository: site, Number: a.pr, By: "ada", State: "APPROVED"})
	a.guards(passes)
	a.audits()
}

// A rebase that leaves the diff alone keeps the check green.
func TestT04RebaseKeepsGreen(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "")
	a.reviews("ada", "APPROVED", "")
	a.guards(passes)
	a.pushes("ada", "main", "other.txt", "changed\n")
	a.s.Git(site, "update-ref", "refs/heads/rebased", a.s.Ref(site, "refs/heads/main"))
	rebased := a.pushes("bob", "rebased", "feature.txt", "feature\n")
	a.s.Git(site, "update-ref", "refs/heads/topic", rebased)
	if head := a.s.Pull(site, a.pr).Head; head != rebased {
		t.Fatalf("the head is %s", head)
	}
	tx := a.tx
	a.guards(passes)
	if a.tx != tx {
		t.Errorf("%s and then %s", tx, a.tx)
	}
	// What the base has of the touched file is part of what was approved.
	a.pushes("ada", "main", "feature.txt", "something else\n")
	a.s.Git(site, "update-ref", "refs/heads/rebased", a.s.Ref(site, "refs/heads/main"))
	a.s.Git(site, "update-ref", "refs/heads/topic", a.pushes("bob", "rebased", "feature.txt", "feature\n"))
	a.guards(asks)
	a.audits()
}

// The command line proposes what settle does, and nothing applies it.
func TestT10OwnDiffByHand(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "")
	if code, stdout, stderr := a.run("review", "--pr-diff", "--pr", fmt.Sprint(a.pr), "--json"); code != 0 || !strings.Contains(stdout, a.tx) {
		t.Errorf("review: %d %s%s", code, stdout, stderr)
	}
	a.reviews("bob", "APPROVED", "") // its author
	if code, stdout, _ := a.run("gate", a.tx); code != console.ExitPending || !strings.Contains(stdout, "its author is the proposer") {
		t.Errorf("gate: %d %s", code, stdout)
	}
	a.reviews("ada", "APPROVED", "")
	head := a.s.Pull(site, a.pr).Head
	for _, args := range [][]string{{"apply", a.tx}, {"apply", a.tx, "--to", "ref"}, {"run", a.tx}} {
		if code, stdout, stderr := a.run(args...); code != console.ExitRefused {
			t.Errorf("%v: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
	if got := a.s.Pull(site, a.pr).Head; got != head {
		t.Errorf("the head moved from %s to %s", head, got)
	}
	a.guards(passes)
}

// A denied pull request goes on saying who denied it, whatever is said there afterwards. Where somebody
// sets the check to success and merges, doctor and audit --online tell; doctor asks about no pull
// request where nothing was denied.
func TestT03DeniedAndMerged(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "")
	doctor := func() string {
		t.Helper()
		a.does("sync")
		a.s.ResetRequests()
		_, stdout, _ := a.run("doctor")
		return stdout
	}
	asked := func(r githubtest.Request) bool { return strings.Contains(string(r.Body), "headRefOid") }
	if told := doctor(); slices.ContainsFunc(a.s.Requests(), asked) || strings.Contains(told, "denied") {
		t.Errorf("%v\n%s", a.s.Requests(), told)
	}
	a.says("ada", "/deny "+a.fingerprint+" not this")
	a.guards(broken)
	tx := a.tx
	for _, said := range []string{"/approve " + a.fingerprint, "/help"} {
		a.says("bob", said)
		a.guards(broken)
		check := a.check("countersign", a.s.Pull(site, a.pr).Head)
		for name, text := range map[string]string{"check": check.Title + "\n" + check.Summary, "comment": a.comment()} {
			for _, want := range []string{"enied by ada", tx, "!not everything", "!nothing counts", "!nothing is proposed"} {
				if not, is := strings.CutPrefix(want, "!"); is == strings.Contains(text, not) {
					t.Errorf("%q, wrongly, in the %s:\n%s", want, name, text)
				}
			}
		}
	}
	first := a.pr
	a.pushes("bob", "again", "feature.txt", "feature\n")
	a.pr = a.s.PullRequest(githubtest.NewPullRequest{Repository: site, Head: "again", Base: "main", By: "bob", Title: "The same"}).Number
	a.happens(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: a.pr})
	a.guards(broken, "denied by ada in")
	if check := a.check("countersign", a.s.Pull(site, a.pr).Head); check.Title != "denied" || !strings.Contains(check.Summary, "denied by ada in") {
		t.Errorf("%+v", check)
	}
	a.pr = first
	if told := doctor(); !slices.ContainsFunc(a.s.Requests(), asked) || !strings.Contains(told, "ok     what was denied was not merged: 1 pull request") {
		t.Errorf("%v\n%s", a.s.Requests(), told)
	}
	if told := doctor(); !strings.Contains(told, "ok     the remote's ledger is the same") {
		t.Errorf("%s", told)
	}
	tip := strings.TrimSpace(a.git(a.dir, "rev-parse", "refs/agent/ledger"))
	a.git(a.dir, "update-ref", "refs/agent/ledger", tip+"~1")
	if _, told, _ := a.run("doctor"); !strings.Contains(told, "note   the remote's goes on after the tip that is here") || strings.Contains(told, "audited") { // doctor audits nothing
		t.Errorf("%s", told)
	}
	a.git(a.dir, "update-ref", "refs/agent/ledger", tip)
	head := a.s.Pull(site, a.pr).Head
	a.s.Merge(site, a.pr, "bob", "squash")
	if told := doctor(); !strings.Contains(told, "fails  pull request 1, denied by ada in "+tx+", is merged at "+head+": it was merged as it was denied") {
		t.Errorf("%s", told)
	}
	if code, stdout, stderr := a.run("audit", "--online"); code != 1 || !strings.Contains(stdout, "changed denied pull request pull request 1 ("+tx+")") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}
