package forgetest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
)

const workflow = `on:
  push:
  pull_request:
  issue_comment:
    types: [created]
jobs:
  say:
    runs-on: ubuntu-latest
    steps:
      - env:
          SAID: ${{ github.event.comment.body }}
        run: |
          printf '%s by %s: %s\n' "$GITHUB_EVENT_NAME" "$GITHUB_ACTOR" "$SAID"
          test "$(id -u)" != 0
`

// TestGiteaRunner: a workflow runs on each event that it names, on this machine and not as root, also after its
// runner was killed.
func TestGiteaRunner(t *testing.T) {
	s := forgetest.Start(t)
	if !s.ListsRuns() {
		t.Skip("\n\n*** NOT TESTED: the runner, as this server does not tell of runs ***\n")
	}
	ada := s.User("ada")
	r := s.Repository(ada, "ada", "site", map[string]string{"a.txt": "a\n", ".github/workflows/ci.yml": workflow})
	runner := s.Runner(forgetest.RunnerOptions{})
	r.WaitRuns(1)
	runner.Kill()
	r.Commit(ada, "topic", "work", map[string]string{"b.txt": "b\n"})
	pull := r.PullRequest(ada, "topic", "main", "Work")
	r.Comment(ada, pull, "hello, runner")
	runner.Start()
	runs := r.WaitRuns(4)
	r.Succeeded(t, runs)
	var events []string
	var commented int64
	for _, run := range runs {
		if events = append(events, run.Event); run.Event == "pull_request_comment" {
			commented = run.ID
		}
	}
	slices.Sort(events) // the server makes a run of a push when it gets to it
	if want := []string{"pull_request", "pull_request_comment", "push", "push"}; !slices.Equal(events, want) {
		t.Errorf("runs on %v, not %v", events, want)
	}
	if log := r.RunLog(commented); !strings.Contains(log, "issue_comment by ada: hello, runner") {
		t.Errorf("the log lacks what the job printed:\n%s", log)
	}
}

// events hands a file from job to job, and then tries what a token without rights must not do.
const events = `name: events
on:
  pull_request:
permissions: {}
jobs:
  make:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout
        with: {ref: "${{ github.event.pull_request.head.sha }}", fetch-depth: 0, persist-credentials: false}
      - run: cp b.txt "$RUNNER_TEMP/made.txt"
      - uses: actions/upload-artifact
        with: {name: made, path: "${{ runner.temp }}/made.txt"}
  take:
    needs: make
    runs-on: ubuntu-latest
    steps:
      - uses: actions/download-artifact
        with: {name: made, path: "${{ runner.temp }}/taken"}
      - run: echo "took $(cat "$RUNNER_TEMP/taken/made.txt")"
      - env:
          TOKEN: ${{ github.token }}
          NUMBER: ${{ github.event.number }}
        run: |
          ask() {
            curl -s -o /dev/null -w "$1: %{http_code}\n" -H "Authorization: token $TOKEN" -H 'Content-Type: application/json' \
              -X "$2" -d "$4" "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/$3"
          }
          ask status POST "statuses/$GITHUB_SHA" '{"context": "forged", "state": "success"}'
          ask comment POST "issues/$NUMBER/comments" '{"body": "forged"}'
          ask edit PATCH "issues/comments/1" '{"body": "forged"}'
          git init -q forged && cd forged
          git -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m forged
          git push -q "${GITHUB_SERVER_URL/:\/\//://x:$TOKEN@}/$GITHUB_REPOSITORY" "HEAD:refs/agent/forged-$NUMBER" && echo "push: done" || echo "push: refused"
`

// follows runs after that, from the default branch.
const follows = `on:
  workflow_run:
    workflows: [events]
    types: [requested, completed]
jobs:
  say:
    runs-on: ubuntu-latest
    steps:
      - env:
          SAID: ${{ github.event.action }} of run ${{ github.event.workflow_run.id }} on ${{ github.event.workflow_run.event }} of ${{ github.event.workflow_run.head_sha }}
        run: echo "$SAID in $GITHUB_REF"
`

// TestGiteaJobs: artifacts go from job to job and to whoever may read the run, workflow_run follows on the default
// branch, and what a job's token may do, whatever its permissions say (docs/forges.md).
func TestGiteaJobs(t *testing.T) {
	s := forgetest.Start(t)
	if !s.ListsRuns() {
		t.Skip("\n\n*** NOT TESTED: the runner, as this server does not tell of runs ***\n")
	}
	own := events
	for name, uses := range s.Actions() {
		own = strings.ReplaceAll(own, "uses: "+name+"\n", "uses: "+uses+"\n")
	}
	ada, bob := s.User("ada"), s.User("bob")
	r := s.Repository(ada, "ada", "site", map[string]string{"a.txt": "a\n", ".github/workflows/follows.yml": follows, ".github/workflows/events.yml": own})
	r.Collaborator(bob, "write")
	s.Runner(forgetest.RunnerOptions{Jobs: 2})

	var issue struct{ Number int64 }
	r.Must(ada, http.MethodPost, r.Path("issues"), map[string]any{"title": "Talk"}, &issue)
	if said := r.Comment(ada, issue.Number, "no"); said != 1 {
		t.Fatalf("the first comment is %d", said)
	}
	commit := r.Commit(bob, "topic", "work", map[string]string{"b.txt": "made here\n"})
	r.PullRequest(bob, "topic", "main", "Work")
	runs := r.WaitRuns(3)
	r.Succeeded(t, runs)
	log := r.RunLog(runs[0].ID)
	for _, want := range []string{"took made here\n", "status: 201\n", "comment: 201\n", "edit: 200\n", "push: done\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("a branch of the repository's own: no %q in\n%s", want, log)
		}
	}
	var followed string
	for _, run := range runs[1:] {
		followed += r.RunLog(run.ID)
	}
	for _, action := range []string{"requested", "completed"} {
		if want := fmt.Sprintf("%s of run %d on pull_request of %s in refs/heads/main\n", action, runs[0].ID, commit); !strings.Contains(followed, want) {
			t.Errorf("no %q in\n%s", want, followed)
		}
	}
	var made struct {
		Artifacts []struct {
			ID   int64
			Name string
		}
	}
	r.Must(ada, http.MethodGet, r.Path("actions", "runs", runs[0].ID, "artifacts"), nil, &made)
	if len(made.Artifacts) != 1 || made.Artifacts[0].Name != "made" {
		t.Errorf("artifacts: %+v", made)
	}

	fork := r.Fork(bob)
	fork.Commit(bob, "fix", "work", map[string]string{"b.txt": "made in a fork\n"})
	r.PullRequest(bob, "bob:fix", "main", "Work")
	runs = r.WaitRuns(6)
	r.Succeeded(t, runs)
	log = ""
	for _, run := range runs[3:] {
		log += r.RunLog(run.ID)
	}
	for _, want := range []string{"took made in a fork\n", "status: 403\n", "comment: 201\n", "edit: 403\n", "push: refused\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("a fork: no %q in\n%s", want, log)
		}
	}
}
