package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/report"
)

// A proposal whose event was displaced in the forge's queue is found by the next
// settle of the pull request, whatever that is about, and is taken once.
func TestT83LostBundle(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}) // whose event nobody saw
	first := h.settled(commented(h.says("bob", "/approve it")))
	if first["verdict"] != "pending" || len(h.s.ReviewComments(site, h.pr)) != 1 {
		t.Fatalf("nothing was proposed: %v", first)
	}
	h.later()
	h.settled(commented(h.says("bob", "/approve this")))
	if got := h.s.ReviewComments(site, h.pr); len(got) != 1 {
		t.Errorf("it was taken again: %+v", got)
	}

	// Two more, of which only the second has its event: they are taken in order.
	h.proposedBy(bundleOf(strings.ReplaceAll(greetFix, "world", "all"), ""), githubtest.NewWorkflowRun{})
	h.later()
	last := h.settled(h.proposedBy(bundleOf(strings.ReplaceAll(greetFix, "hello, world", "good day"), ""), githubtest.NewWorkflowRun{}))
	if last["transaction"] == first["transaction"] || last["verdict"] != "pending" {
		t.Errorf("outputs %v", last)
	}
	h.clone()
	_, stdout, _ := h.run("list", "--json")
	if got := strings.Count(stdout, `"status":"superseded"`); got != 2 {
		t.Errorf("%d were superseded: %s", got, stdout)
	}
	h.later()
	h.says("ada", "/approve "+last["fingerprint"])
	out := h.settled(commented(h.says("bob", "/approve me")))
	if out["outcome"] != "SUCCESS" || h.s.File(site, "topic", "greet.txt") != "one\ngood day\nthree\n" {
		t.Errorf("outputs %v", out)
	}
	h.audits()
}

// A lost bundle that cannot be taken is told, and keeps nobody from the rest; a
// run of another file, head or outcome hands over nothing.
func TestT83NoBundleOfOthers(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.s.Fork(site, "eve/site")
	for _, n := range []githubtest.NewWorkflowRun{
		{HeadRepository: "eve/site"}, {HeadBranch: "main"}, {Conclusion: "failure"}, {HeadSHA: h.s.Ref(site, "refs/heads/main")},
	} {
		h.proposedBy(bundleOf(greetFix, ""), n)
	}
	id := h.runOf("other", githubtest.NewWorkflowRun{Event: "pull_request"})
	h.s.Artifact(githubtest.NewArtifact{Repository: site, Run: id, Name: pull.BundleName, Files: map[string]string{"bundle.json": bundleOf(greetFix, "")}})
	e := commented(h.says("bob", "/approve it"))
	h.settled(e)
	if h.s.Ref(site, ledgerRef) != "" {
		t.Error("something was proposed")
	}
	h.proposedBy("{}", githubtest.NewWorkflowRun{})
	h.settled(e)
	if got := h.comment(); !strings.Contains(got, "A proposal of an earlier run could not be read") {
		t.Errorf("the comment says %q", got)
	}
}

// Where two pull requests have one head, nobody can tell whose an earlier run is:
// that keeps neither from being settled, nor the event's own bundle out.
func TestT83TwoOfOneHead(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	h.s.Push(githubtest.NewCommit{Repository: site, Branch: "dev", By: "ada", Files: map[string]string{"dev.txt": "x\n"}})
	h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "eve", Head: "topic", Base: "dev", Title: "The same"})
	h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{})
	h.settled(commented(h.says("bob", "/approve it")))
	if h.s.Ref(site, ledgerRef) != "" {
		t.Error("something was proposed")
	}
	h.on(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))
	h.s.Fail(githubtest.Fault{Kind: githubtest.Body, Text: `{"workflow_runs":[{}]}`, Path: "/api/v3/repos/acme/site/actions/runs"})
	if code, outputs, printed := h.action("settle", "pr="+fmt.Sprint(h.pr)); code != console.ExitIO || outputs["verdict"] != "pending" {
		t.Errorf("where the runs cannot be read: exit code %d: %v\n%s", code, outputs, printed)
	}
}

// The sweep finds it too, where nothing happens on the pull request any more.
func TestT83Sweep(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{})
	h.on(githubtest.Event{Name: "schedule"})
	for range 2 {
		if code, _, printed := h.action("sweep"); code != 0 || len(h.s.ReviewComments(site, h.pr)) != 1 {
			t.Fatalf("exit code %d: %s", code, printed)
		}
	}
	h.audits()
}

// A pull request whose own diff the Policy guards is asked about by the sweep, where no event
// told of it, and again after each push: those to the branches that the gate names alone, and
// none that was asked about already.
func TestT83SweepAsks(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	h.pushes("ada", "dev", "dev.txt", "x\n")
	h.pushes("bob", "other", "other.txt", "y\n")
	ungated := h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "other", Base: "dev", Title: "Other"})
	head := func() string { return h.s.Pull(site, h.pr).Head }
	sweeps := func(want string) {
		t.Helper()
		h.on(githubtest.Event{Name: "schedule"})
		code, _, printed := h.action("sweep")
		if got := h.check("countersign", head()).Conclusion; code != 0 || got != want {
			t.Fatalf("exit code %d, the check says %q, want %q: %s", code, got, want, printed)
		}
	}
	sweeps("") // no gate
	h.policy("gate: {bases: [main]}\n")
	if code, _, stderr := h.run("settle", "--all", "--no-gate"); code != 0 || h.s.Ref(site, ledgerRef) != "" {
		t.Errorf("exit code %d, and the ledger is at %q: %s", code, h.s.Ref(site, ledgerRef), stderr)
	}
	sweeps(report.CheckActionRequired)
	tip := h.s.Ref(site, ledgerRef)
	sweeps(report.CheckActionRequired)
	if h.s.Ref(site, ledgerRef) != tip {
		t.Error("it was asked about twice")
	}
	_, line, _ := strings.Cut(h.comment(), "/approve ")
	h.says("ada", "/deny "+line[:len("patchset:")+64]) // which ends the transaction
	sweeps(report.CheckFailure)
	h.pushes("eve", "topic", "more.txt", "more\n")
	sweeps(report.CheckActionRequired)
	if h.asked(fmt.Sprintf("/api/v3/repos/%s/pulls/%d", site, ungated.Number)) {
		t.Error("a pull request to another branch was looked at")
	}
	h.audits()
}

// A settle that a server cuts off is begun anew in the same run, and does nothing twice.
func TestSettleAgain(t *testing.T) {
	long(t)
	t.Parallel()
	for name, f := range map[string]githubtest.Fault{
		"a check run":              {Status: 502, Method: "POST", Path: "/api/v3/repos/acme/site/check-runs"},
		"a check run after it did": {Status: 502, Method: "POST", Path: "/api/v3/repos/acme/site/check-runs", After: true},
		"the comment":              {Status: 500, Method: "PATCH", Path: "/api/v3/repos/acme/site/issues/comments"},
		"the memory of the tip":    {Status: 502, Method: "PATCH", Path: "/api/v3/repos/acme/site/check-runs", Skip: 1},
		"the runs":                 {Status: 502, Path: "/api/v3/repos/acme/site/actions/runs", Times: 5},
		"the conversation":         {Status: 502, Path: "/api/v3/repos/acme/site/issues/1/comments", Times: 5},
		"the push":                 {Status: 502, Path: "/acme/site.git/git-receive-pack", Times: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttack(t, "")
			a.says("ada", "/approve "+a.fingerprint)
			a.clone()
			a.s.Fail(f)
			if out := a.settle(0, "--no-gate"); slices.Contains(out.Notes, report.NoteUnanswered) || !slices.Contains(out.Notes, report.NoteNoCI) || a.status(a.tx) != "completed" {
				t.Errorf("%s, and notes %q", a.status(a.tx), out.Notes)
			}
			a.s.Heal()
			if commits := a.s.Git(site, "rev-list", "--count", a.tip+"..refs/heads/topic"); commits != "1" {
				t.Errorf("%s commits", commits)
			}
			if text := a.comment(); !strings.Contains(text, "### Applied: [") || !strings.Contains(text, report.NoteNoCI) {
				t.Errorf("the comment says %q", text)
			}
			a.audits()
		})
	}
}

// A denial that comes before a settle is begun anew counts, and what was written by then is recorded once.
func TestSettleAgainDenied(t *testing.T) {
	long(t)
	t.Parallel()
	const pushed = "/acme/site.git/git-receive-pack"
	for name, c := range map[string]struct {
		fault   githubtest.Fault
		commits string
	}{
		"the conversation":  {githubtest.Fault{Status: 502, Path: "/api/v3/repos/acme/site/issues/1/comments", Times: 5}, "0"},
		"the decision":      {githubtest.Fault{Status: 502, Path: pushed, Times: 5}, "0"},
		"the intent":        {githubtest.Fault{Status: 502, Path: pushed, Skip: 1, Times: 5}, "0"},
		"what was written":  {githubtest.Fault{Status: 502, Path: pushed, Skip: 3, Times: 5}, "1"},
		"what was verified": {githubtest.Fault{Status: 502, Path: pushed, Skip: 4, Times: 5}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttack(t, "")
			a.says("ada", "/approve "+a.fingerprint)
			a.clone()
			a.s.Fail(c.fault)
			a.paused = func(d time.Duration) {
				if d == 15*time.Second { // it is begun anew
					a.says("bob", "/deny "+a.fingerprint)
				}
			}
			a.settle(console.ExitDenied, "--no-gate")
			a.s.Heal()
			if commits := a.s.Git(site, "rev-list", "--count", a.tip+"..refs/heads/topic"); commits != c.commits || (a.status(a.tx) == "denied") != (commits == "0") {
				t.Errorf("%s, %s commits", a.status(a.tx), commits)
			}
			if text := a.comment(); !strings.Contains(text, "enied by bob") || len(a.s.ReviewComments(site, a.pr)) != 1 {
				t.Errorf("the comment says %q", text)
			}
			a.audits()
		})
	}
}

// What a server that stays away kept from being done is told for a person, with the proposal that it
// is about and without a request for anything else; the next event of another pull request takes it up.
func TestSettleLeft(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	h.policy("gate: {bases: [main]}\n")
	h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))
	proposed := h.s.ReviewComments(site, h.pr)[0].Body
	_, fingerprint, _ := strings.Cut(proposed, "/approve ")
	fingerprint = fingerprint[:len("patchset:")+64]
	h.pushes("bob", "other", "other.txt", "y\n")
	other := h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "other", Base: "main", Title: "Other"}).Number
	h.later()
	said := h.says("ada", "/approve "+fingerprint)
	h.on(commented(said))
	h.s.Fail(githubtest.Fault{Status: 502, Contains: "reviewThreads", Skip: 1, Times: -1})
	code, _, printed := h.action("settle", fmt.Sprint("pr=", h.pr))
	h.s.Heal()
	text := h.comment()
	if code != console.ExitIO || !strings.Contains(text, report.NoteUnanswered) || strings.Contains(text, "status 502") || !strings.Contains(printed, "status 502") {
		t.Errorf("exit code %d: %s\n%s", code, text, printed)
	}
	if strings.Count(text, "/approve ") > strings.Count(text, "/approve "+fingerprint) {
		t.Errorf("another transaction is to be approved: %s", text)
	}
	took := func(want bool, number int) {
		t.Helper()
		h.s.ResetRequests()
		h.on(githubtest.Event{Name: "pull_request_target", Action: "synchronize", Number: number})
		code, _, printed := h.action("settle", fmt.Sprint("pr=", number))
		if got := strings.Contains(printed, fmt.Sprintf("the last run of pull request %d failed", h.pr)); code != 0 || got != want {
			t.Errorf("exit code %d, taken up: %v, want %v: %s", code, got, want, printed)
		}
	}
	took(false, other)
	ran := func(conclusion string, of int) {
		h.later()
		h.runOf("countersign", githubtest.NewWorkflowRun{HeadBranch: "main", Event: "issue_comment", Conclusion: conclusion, Title: fmt.Sprint("countersign after issue_comment ", of)})
		h.later()
	}
	ran("failure", h.pr)
	took(true, other)
	if got := h.s.File(site, "topic", "greet.txt"); got != "one\nhello, world\nthree\n" {
		t.Errorf("greet.txt is %q", got)
	}
	ran("success", h.pr)
	took(false, other)
	ran("failure", h.pr)
	for range 5 {
		took(true, other)
		ran("success", other)
	}
	took(false, other)
	h.audits()
}

// Where it could not be read what was proposed, nobody is told that nothing is.
func TestSettleUnread(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.on(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))
	h.s.Fail(githubtest.Fault{Status: 502, Path: "/api/v3/repos/acme/site/actions/", Times: -1})
	code, _, printed := h.action("settle", fmt.Sprint("pr=", h.pr))
	if text := h.comment(); code != console.ExitIO || !strings.Contains(text, "not finished") || strings.Contains(text, "nothing is proposed") || strings.Contains(text, "status 502") {
		t.Errorf("exit code %d: %s\n%s", code, text, printed)
	}
}
