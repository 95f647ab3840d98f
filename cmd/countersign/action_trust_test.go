package main

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// TestT68BundleIsNotBelieved: the pull request and the proposer are the event's.
func TestT68BundleIsNotBelieved(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	h.s.Fork(site, "eve/site")
	fork := h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "eve", Head: "topic", HeadRepository: "eve/site", Title: "Fork"})
	for _, more := range []string{`"pull_request":1,`, `"proposer":{"id":"1","kind":"user","login":"ada"},`, `"repository":"acme/other",`, `"transaction":"tx_1",`} {
		event := h.proposedBy(bundleOf(greetFix, more), githubtest.NewWorkflowRun{HeadRepository: "eve/site"})
		h.on(event)
		if code, _, printed := h.action("settle"); code == 0 || h.s.Ref(site, "refs/agent/ledger") != "" {
			t.Errorf("a bundle with %s: exit code %d\n%s", more, code, printed)
		}
	}
	h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{HeadRepository: "eve/site"}))
	h.clone()
	_, stdout, stderr := h.run("show", "--json")
	if !strings.Contains(stdout, fmt.Sprintf(`"pull_request":%d`, fork.Number)) || !strings.Contains(stdout, `"login":"eve"`) {
		t.Errorf("the transaction is %s%s", stdout, stderr)
	}
}

// TestT18EventsOfThePullRequest: a workflow whose file the pull request brings
// settles nothing, whatever it is given.
func TestT18EventsOfThePullRequest(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	fingerprint := h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))["fingerprint"]
	review := h.s.Review(githubtest.NewComment{Repository: site, Number: h.pr, By: "ada", State: "COMMENTED", Body: "/approve " + fingerprint})
	thread := h.s.ReviewComments(site, h.pr)[0].ID
	said := h.s.ReviewComment(githubtest.NewComment{Repository: site, Number: h.pr, By: "ada", ReplyTo: thread, Body: "/approve"})
	before := h.state()
	for _, c := range []struct {
		event githubtest.Event
		ref   string // that the workflow runs on, if not the event's
	}{
		{event: githubtest.Event{Name: "pull_request", Action: "synchronize", Number: h.pr}},
		{event: githubtest.Event{Name: "pull_request_review", Action: "submitted", ID: review.ID}},
		{event: githubtest.Event{Name: "pull_request_review_comment", Action: "created", ID: said.ID}},
		{event: githubtest.Event{Name: "workflow_dispatch", Inputs: map[string]string{"pr": "1"}}, ref: "refs/heads/topic"},
	} {
		for _, stage := range []string{"settle pr=1", "settle", "sweep"} {
			h.on(c.event)
			h.env["GITHUB_REF"] = cmp.Or(c.ref, h.env["GITHUB_REF"])
			h.s.ResetRequests()
			words := strings.Fields(stage)
			code, _, printed := h.action(words[0], words[1:]...)
			if code != console.ExitRefused || !strings.Contains(printed, "workflow") || !strings.Contains(printed, "hint:") {
				t.Errorf("%s on %s: exit code %d\n%s", stage, c.event.Name, code, printed)
			}
			if writes := h.s.Count().Writes; writes != 0 || h.state() != before {
				t.Errorf("%s on %s wrote %d times", stage, c.event.Name, writes)
			}
		}
	}
}

// TestT18StagesOfOneTransaction: neither do the stages that take one transaction
// on read approvals, or act on them, in such a workflow.
func TestT18StagesOfOneTransaction(t *testing.T) {
	long(t)
	t.Parallel()
	for _, stage := range []string{"gate", "apply", "run"} {
		h := newHub(t)
		out := h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))
		review := h.s.Review(githubtest.NewComment{Repository: site, Number: h.pr, By: "ada", State: "COMMENTED", Body: "/approve " + out["fingerprint"]})
		if stage == "apply" { // which reads again what a trusted run has recorded
			h.on(githubtest.Event{Name: "workflow_dispatch", Inputs: map[string]string{"pr": "1"}})
			h.action("gate", "transaction="+out["transaction"])
		}
		before := h.state()
		h.on(githubtest.Event{Name: "pull_request_review", Action: "submitted", ID: review.ID})
		if code, _, printed := h.action(stage, "transaction="+out["transaction"]); code != console.ExitRefused || h.state() != before {
			t.Errorf("%s: exit code %d\n%s", stage, code, printed)
		}
	}
}

// TestT15EventOfAnotherRepository: an event that names another repository, or none,
// moves nothing, whatever the repository is called now.
func TestT15EventOfAnotherRepository(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	tx, fingerprint := h.propose(greetFix)
	h.says("ada", "/approve "+fingerprint)
	before := h.state()
	for name, repository := range map[string]any{
		"another": map[string]any{"id": h.id + 1, "full_name": site, "default_branch": "main"},
		"none":    map[string]any{"full_name": site, "default_branch": "main"},
	} {
		h.event("workflow_dispatch", map[string]any{"repository": repository})
		code, _, stderr := h.run("settle", "--pr", fmt.Sprint(h.pr))
		if code != console.ExitRefused || !strings.Contains(stderr, "the workflow's event is of the repository with the number") {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
		h.wantState(name, before)
	}
	h.event("workflow_dispatch", nil)
	if done := h.settle(0, "--no-gate"); done.Transactions[0].ID != tx {
		t.Errorf("%+v", done)
	}
}
