package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// on puts an event in place as GitHub tells it to a workflow.
func (h *hub) on(e githubtest.Event) {
	h.Helper()
	e.Repository = site
	payload := string(h.s.Event(e))
	h.env["GITHUB_EVENT_NAME"], h.env["GITHUB_EVENT_PATH"], h.env["GITHUB_REF"] = e.Name, h.write("event.json", payload), "refs/heads/main"
	switch e.Name {
	case "pull_request", "pull_request_review", "pull_request_review_comment":
		h.env["GITHUB_REF"] = fmt.Sprintf("refs/pull/%d/merge", h.pr)
	case "merge_group":
		h.env["GITHUB_REF"] = fmt.Sprintf("refs/heads/gh-readonly-queue/main/pr-%d-%s", e.Number, h.s.Ref(site, "refs/heads/main"))
	}
}

// action runs a stage as a step of a workflow, in a fresh clone, and returns its
// exit code, outputs and what it printed.
func (h *hub) action(stage string, inputs ...string) (code int, outputs map[string]string, printed string) {
	h.Helper()
	env := h.env
	h.clone()
	h.env = env
	return h.step(stage, inputs...)
}

// step is a step of a job that has its clone already.
func (h *hub) step(stage string, inputs ...string) (code int, outputs map[string]string, printed string) {
	h.Helper()
	h.env["INPUT_STAGE"], h.env["GITHUB_OUTPUT"], h.env["GITHUB_STEP_SUMMARY"] = stage, h.write("output", ""), h.write("summary", "")
	for _, input := range inputs {
		name, value, _ := strings.Cut(input, "=")
		h.env["INPUT_"+strings.ToUpper(name)] = value
		defer delete(h.env, "INPUT_"+strings.ToUpper(name))
	}
	code, stdout, stderr := h.run("action")
	raw, err := os.ReadFile(h.env["GITHUB_OUTPUT"])
	check(h.T, err)
	return code, stepOutputs(string(raw)), stdout + stderr
}

// stepOutputs reads the file GITHUB_OUTPUT: name<<mark, the value, mark.
func stepOutputs(text string) map[string]string {
	out := map[string]string{}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		name, mark, ok := strings.Cut(lines[i], "<<")
		if !ok {
			continue
		}
		var value []string
		for i++; i < len(lines) && lines[i] != mark; i++ {
			value = append(value, lines[i])
		}
		out[name] = strings.Join(value, "\n")
	}
	return out
}

// planned runs the stage plan for an event.
func (h *hub) planned(e githubtest.Event) (number, act string) {
	h.Helper()
	number, act, _ = h.plannedStage(e)
	return number, act
}

func (h *hub) plannedStage(e githubtest.Event) (number, act, stage string) {
	h.Helper()
	h.on(e)
	code, outputs, printed := h.action("plan")
	if code != 0 {
		h.Fatalf("plan on %s: %d\n%s", e.Name, code, printed)
	}
	return outputs["pull-request"], outputs["act"], outputs["stage"]
}

// runOf is a run of one of our workflows on the pull request's branch.
func (h *hub) runOf(workflow string, n githubtest.NewWorkflowRun) int64 {
	h.Helper()
	n.Repository, n.Name, n.Path, n.By = site, workflow, ".github/workflows/"+workflow+".yml", cmp.Or(n.By, "bob")
	n.HeadBranch = cmp.Or(n.HeadBranch, "topic")
	return h.s.WorkflowRun(n)
}

// TestActionPlan: which pull request an event is about, and whether there is
// anything to do.
func TestActionPlan(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.s.Fork(site, "eve/site")
	fork := h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "eve", Head: "topic", HeadRepository: "eve/site", Title: "Fork"})
	edited, chat := h.says("ada", "/deny it"), h.says("ada", "nice /approve")
	h.s.Edit(edited, "ada", "never mind")
	h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "bob", Files: map[string]string{"main.txt": "main\n"}})
	h.s.Push(githubtest.NewCommit{Repository: site, Branch: "other", By: "bob", Files: map[string]string{"main.txt": "main\n"}})
	h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "main", Base: "topic", Title: "From the default branch"})
	ended := func(n githubtest.NewWorkflowRun) githubtest.Event {
		return githubtest.Event{Name: "workflow_run", Action: "completed", ID: h.runOf("countersign-events", n)}
	}
	of := func(workflow string, n githubtest.NewWorkflowRun) githubtest.Event {
		return githubtest.Event{Name: "workflow_run", Action: "completed", ID: h.runOf(workflow, n)}
	}
	for _, c := range []struct {
		name, number, act, stage string
		event                    githubtest.Event
	}{
		{"a command", "1", "true", "settle", commented(h.says("ada", "/approve"))},
		{"chatter", "1", "false", "settle", commented(chat)},
		{"a command that was edited away", "1", "true", "settle", githubtest.Event{Name: "issue_comment", Action: "edited", ID: edited}},
		{"a command that was deleted", "1", "true", "settle", githubtest.Event{Name: "issue_comment", Action: "deleted", ID: h.deleted("ada", "/deny")}},
		{"a reader's command", "1", "false", "settle", commented(h.says("eve", "/approve"))},
		{"a reader's command that was deleted", "1", "false", "settle", githubtest.Event{Name: "issue_comment", Action: "deleted", ID: h.deleted("eve", "/deny")}},
		{"a reader's command on their own pull request", fmt.Sprint(fork.Number), "true", "settle", commented(h.s.Comment(githubtest.NewComment{Repository: site, Number: fork.Number, By: "eve", Body: "/deny it"}).ID)},
		{"the end of relay for a reader", "1", "false", "settle", ended(githubtest.NewWorkflowRun{Event: "pull_request_review_comment", By: "eve"})},
		{"the end of relay for a reader on their own pull request", fmt.Sprint(fork.Number), "true", "settle", ended(githubtest.NewWorkflowRun{HeadRepository: "eve/site", Event: "pull_request_review", By: "eve"})},
		{"the end of propose for a reader", "1", "true", "settle", ended(githubtest.NewWorkflowRun{Event: "pull_request", By: "eve"})},
		{"the end of propose", "1", "true", "settle", ended(githubtest.NewWorkflowRun{Event: "pull_request"})},
		{"the end of relay", "1", "true", "settle", ended(githubtest.NewWorkflowRun{Event: "pull_request_review"})},
		{"a fork's run", fmt.Sprint(fork.Number), "true", "settle", ended(githubtest.NewWorkflowRun{HeadRepository: "eve/site", Event: "pull_request"})},
		{"a run on a branch without a pull request", "", "false", "settle", ended(githubtest.NewWorkflowRun{HeadBranch: "other", Event: "push"})},
		{"a schedule's run", "", "true", "sweep", ended(githubtest.NewWorkflowRun{HeadBranch: "main", Event: "schedule"})},
		{"a schedule's run on another branch", "", "false", "settle", ended(githubtest.NewWorkflowRun{Event: "schedule"})},
		{"a schedule's run of a fork", "", "false", "settle", ended(githubtest.NewWorkflowRun{HeadRepository: "eve/site", HeadBranch: "main", Event: "schedule"})},
		{"a run by hand on the default branch", "", "true", "settle", ended(githubtest.NewWorkflowRun{HeadBranch: "main", Event: "workflow_dispatch"})},
		{"a schedule's run of another workflow", "", "false", "settle", of("other", githubtest.NewWorkflowRun{HeadBranch: "main", Event: "schedule"})},
		{"a schedule's run that failed", "", "false", "settle", ended(githubtest.NewWorkflowRun{HeadBranch: "main", Event: "schedule", Conclusion: "failure"})},
		{"a pull request that calls itself a schedule", "1", "true", "settle", ended(githubtest.NewWorkflowRun{Event: "pull_request", HeadBranch: "topic"})},
		{"a pull request", "1", "true", "settle", githubtest.Event{Name: "pull_request_target", Action: "synchronize", Number: 1}},
		{"the merge queue", "1", "true", "settle", githubtest.Event{Name: "merge_group", Action: "checks_requested", Number: 1, Commit: "topic"}},
		{"by hand", "1", "true", "settle", githubtest.Event{Name: "workflow_dispatch", Inputs: map[string]string{"pr": "1"}}},
		{"by hand, for all", "", "true", "sweep", githubtest.Event{Name: "workflow_dispatch", Inputs: map[string]string{"pr": ""}}},
		{"a schedule", "", "true", "sweep", githubtest.Event{Name: "schedule"}},
	} {
		if number, act, stage := h.plannedStage(c.event); number != c.number || act != c.act || stage != c.stage {
			t.Errorf("%s: pull request %q, act %s, stage %s; want %q, %s, %s", c.name, number, act, stage, c.number, c.act, c.stage)
		}
	}
}

// TestActionPlanPrivate: who may read a repository that not everybody may read was let in, and what cannot
// be asked is no reason to do nothing.
func TestActionPlanPrivate(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	said := commented(h.says("eve", "/approve"))
	if _, act := h.planned(said); act != "false" {
		t.Error("a reader's command is settled")
	}
	h.s.Fail(githubtest.Fault{Path: "/api/v3/repos/" + site + "/collaborators/", Status: 400, Times: -1})
	if _, act := h.planned(said); act != "true" {
		t.Error("nothing is settled as nobody could be asked")
	}
	h.s.Heal()
	raw, err := os.ReadFile(h.env["GITHUB_EVENT_PATH"])
	check(t, err)
	private := regexp.MustCompile(`"private": ?false`).ReplaceAll(raw, []byte(`"private":true`))
	check(t, os.WriteFile(h.env["GITHUB_EVENT_PATH"], private, 0o600))
	if code, outputs, printed := h.action("plan"); bytes.Equal(raw, private) || outputs["act"] != "true" {
		t.Errorf("a reader of a private repository: %d %v\n%s", code, outputs, printed)
	}
}

// deleted is a comment that is there no more.
func (h *hub) deleted(by, body string) int64 {
	id := h.says(by, body)
	h.s.Delete(id)
	return id
}
