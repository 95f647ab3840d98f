package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/pull"
)

// A proposal whose event was displaced in the forge's queue is found by the next
// settle of the pull request, whatever that is about, and is taken once.
func TestT83LostBundle(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}) // whose event nobody saw
	first := h.settled(commented(h.says("eve", "/approve it")))
	if first["verdict"] != "pending" || len(h.s.ReviewComments(site, h.pr)) != 1 {
		t.Fatalf("nothing was proposed: %v", first)
	}
	h.later()
	h.settled(commented(h.says("eve", "/approve this")))
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
	out := h.settled(commented(h.says("eve", "/approve me")))
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
	e := commented(h.says("eve", "/approve it"))
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
	t.Parallel()
	h := newHub(t)
	h.s.Push(githubtest.NewCommit{Repository: site, Branch: "dev", By: "ada", Files: map[string]string{"dev.txt": "x\n"}})
	h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "eve", Head: "topic", Base: "dev", Title: "The same"})
	h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{})
	h.settled(commented(h.says("eve", "/approve it")))
	if h.s.Ref(site, ledgerRef) != "" {
		t.Error("something was proposed")
	}
	h.on(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))
	h.s.Fail(githubtest.Fault{Kind: githubtest.Body, Text: `{"workflow_runs":[{}]}`, Path: "/api/v3/repos/acme/site/actions/runs"})
	if code, outputs, printed := h.action("settle", "pr="+fmt.Sprint(h.pr)); code != cli.ExitIO || outputs["verdict"] != "pending" {
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
