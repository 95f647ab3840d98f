package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/pipeline/pull"
)

// A runner runs the real workflows of init and the real action.yml on this
// machine, for a repository of the GitHub stand-in.
type runner struct {
	*hub
	tool
	head    string // repository that the pull request's branch "topic" is in
	uploads string // folder that the artifacts of the last run are in
	jobs    int    // how many jobs of a run there are at once
}

// actUses is the action as the workflows of these tests name it; act takes it
// from the copy of this repository.
const actUses = "acme/countersign@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// The two workflows that init writes, by their files.
const (
	callerFile = "countersign.yml"
	eventsFile = "countersign-events.yml"
)

// newRunner is a hub whose default branch has the workflows, and whose pull
// request brings a text without the line break at its end: what the bot of the
// propose workflow mends.
func newRunner(t *testing.T, o tool, c actCase) *runner {
	t.Helper()
	r := &runner{hub: openHub(t, c.private), tool: o, head: site, jobs: 1}
	if code, _, stderr := r.run("init", "--fleet", "--organization", "--uses", actUses, fmt.Sprintf("--gate=%t", !c.proposals), fmt.Sprintf("--inline=%t", c.inline)); code != 0 {
		t.Fatal(stderr)
	}
	files := map[string]string{}
	for _, file := range scaffold.List[:5] { // all but what is called
		raw, err := os.ReadFile(filepath.Join(r.dir, file.Path))
		check(t, err)
		files[file.Path] = string(raw)
	}
	files[scaffold.List[0].Path] += c.policy
	r.push(site, "main", files)
	r.push(site, "topic", map[string]string{"feature.txt": before})
	r.clone()
	return r
}

func (r *runner) push(repository, branch string, files map[string]string) {
	r.s.Push(githubtest.NewCommit{Repository: repository, Branch: branch, By: "bob", Message: "work", Files: files})
}

// act runs a workflow file of the clone for an event, wants its jobs to succeed
// or be skipped, and returns the log.
func (r *runner) act(workflow string, e githubtest.Event) string {
	r.Helper()
	return r.finish(r.start(workflow, e))
}

// A running is a run of act, and what it printed so far.
type running struct {
	cmd *exec.Cmd
	log bytes.Buffer
}

func (r *runner) finish(a *running) string {
	r.Helper()
	log, failed := r.end(a)
	if failed {
		r.Fatalf("act %s failed\n%s", a.cmd.Args[1], log)
	}
	return log
}

// try runs a workflow that may fail.
func (r *runner) try(workflow string, e githubtest.Event) (log string, failed bool) {
	r.Helper()
	return r.end(r.start(workflow, e))
}

func (r *runner) end(a *running) (log string, failed bool) {
	r.Helper()
	err := a.cmd.Wait()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		r.Fatal(err)
	}
	if testing.Verbose() {
		r.Logf("act %s: %v\n%s", a.cmd.Args[1], err, a.log.String())
	}
	return a.log.String(), err != nil
}

// start starts a run, whose uploads go to a folder of its own.
func (r *runner) start(workflow string, e githubtest.Event) *running {
	r.Helper()
	e.Repository = site
	token := r.token
	if workflow == eventsFile { // act gives each job the same token, whatever its permissions say
		token = r.s.ActionsToken(site, "contents:read")
	}
	home := r.TempDir()
	r.uploads = filepath.Join(home, "artifacts")
	args := []string{
		e.Name, "-C", r.dir, "-W", filepath.Join(r.dir, ".github", "workflows", workflow), "-e", r.write("event.json", string(r.s.Event(e))),
		"-a", "ada", "-P", "ubuntu-latest=-self-hosted", "--no-cache-server", fmt.Sprintf("--concurrent-jobs=%d", r.jobs),
		"--action-cache-path", filepath.Join(home, "cache"), "-s", "GITHUB_TOKEN=" + token,
	}
	for uses, folder := range r.actions() {
		args = append(args, "--local-repository", uses+"="+folder)
	}
	env := r.tool.env()
	env["GITHUB_API_URL"], env["GITHUB_GRAPHQL_URL"], env["GITHUB_SERVER_URL"], env["GITHUB_REPOSITORY"] = r.s.API(), r.s.GraphQL(), r.s.URL, site
	env["HOME"], env["ARTIFACTS"] = home, r.uploads
	for name, value := range env {
		args = append(args, "--env", name+"="+value)
	}
	a := &running{cmd: exec.Command(r.program, args...)}
	a.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
	a.cmd.Stdout, a.cmd.Stderr = &a.log, &a.log
	check(r.T, a.cmd.Start())
	return a
}

// proposes runs the propose workflow for the pull request, and returns the event
// that GitHub makes of its end.
func (r *runner) proposes() githubtest.Event {
	r.Helper()
	r.act(eventsFile, githubtest.Event{Name: "pull_request", Action: "synchronize", Number: r.pr})
	raw, err := os.ReadFile(filepath.Join(r.uploads, pull.BundleName, "bundle.json"))
	check(r.T, err)
	return r.ran("pull_request", map[string]string{"bundle.json": string(raw)})
}

// relays runs the relay workflow for a review, and returns the event of its end.
func (r *runner) relays(review int64) githubtest.Event {
	r.Helper()
	log := r.act(eventsFile, githubtest.Event{Name: "pull_request_review", Action: "submitted", ID: review})
	if !strings.Contains(log, "Job succeeded") {
		r.Fatalf("the relay did not run:\n%s", log)
	}
	return r.ran("pull_request_review", nil)
}

// ran makes a run of the events workflow on the head of the pull request, as it is on
// GitHub once it ended, and returns the event of its end.
func (r *runner) ran(event string, uploaded map[string]string) githubtest.Event {
	r.Helper()
	e := r.ranOn("topic", event)
	if uploaded != nil {
		r.s.Artifact(githubtest.NewArtifact{Repository: site, Run: e.ID, Name: pull.BundleName, Files: uploaded})
	}
	return e
}

func (r *runner) ranOn(branch, event string) githubtest.Event {
	repository := r.head
	if branch == "main" {
		repository = site
	}
	id := r.s.WorkflowRun(githubtest.NewWorkflowRun{
		Repository: site, HeadRepository: repository, HeadBranch: branch, By: "bob",
		Name: "countersign-events", Path: ".github/workflows/" + eventsFile, Event: event,
	})
	return githubtest.Event{Name: "workflow_run", Action: "completed", ID: id}
}

// settles runs the settle workflow for an event.
func (r *runner) settles(e githubtest.Event) string {
	r.Helper()
	return r.act(callerFile, e)
}

// commented is the event of a new comment.
func commented(id int64) githubtest.Event {
	return githubtest.Event{Name: "issue_comment", Action: "created", ID: id}
}
