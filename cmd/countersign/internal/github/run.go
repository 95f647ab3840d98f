package github

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/google/go-github/v60/github"
)

// A workflowRun has what go-github leaves out.
type workflowRun struct {
	github.WorkflowRun
	Path string `json:"path"`
}

// PullRuns lists the workflow runs of pull requests that succeeded, in the order in
// which they ended: those on a commit or, for "", those that ended after since.
func (c *Client) PullRuns(ctx context.Context, commit string, since time.Time) ([]forge.Run, error) {
	op := "looking for workflow runs of pull requests"
	query := url.Values{"event": {"pull_request"}, "status": {"success"}}
	if commit != "" {
		if err := rest.CheckCommit(commit); err != nil {
			return nil, failed(op, err)
		}
		query.Set("head_sha", commit)
	}
	runs, err := c.runs(ctx, query, since, func(run forge.Run, _ bool) bool {
		return (commit == "" || run.HeadCommit == commit) && run.Event == "pull_request" && run.Conclusion == "success"
	})
	return runs, failed(op, err)
}

// EndedRuns is forge.Runs'.
func (c *Client) EndedRuns(ctx context.Context, branch, conclusion string, since time.Time) ([]forge.Run, error) {
	query := url.Values{"status": {conclusion}}
	if branch != "" {
		query.Set("branch", branch)
	}
	runs, err := c.runs(ctx, query, since, func(run forge.Run, own bool) bool {
		return run.Conclusion == conclusion && (branch == "" || run.HeadBranch == branch && own)
	})
	return runs, failed("looking for workflow runs", err)
}

// runs lists those that ended after since and are to be kept, own being of this repository's own
// branches, in the order in which they ended. The answers have the newest first.
func (c *Client) runs(ctx context.Context, query url.Values, since time.Time, keep func(run forge.Run, own bool) bool) (out []forge.Run, err error) {
	type answer struct {
		Runs []workflowRun `json:"workflow_runs"`
	}
	err = pages(ctx, c, query, func(got answer) (more bool, err error) {
		more = true
		for _, told := range got.Runs {
			run, err := told.run()
			if err != nil {
				return false, err
			}
			switch {
			case run.UpdatedAt.Before(since):
				more = false
			case keep(run, told.GetHeadRepository().GetID() == told.GetRepository().GetID()):
				out = append(out, run)
			}
		}
		return more, nil
	}, c.Below("actions", "runs")...)
	rest.SortRuns(out)
	return out, err
}

func (got *workflowRun) run() (forge.Run, error) {
	if got.GetID() <= 0 || got.Repository == nil || rest.CheckCommit(got.GetHeadSHA()) != nil {
		return forge.Run{}, rest.Unusable("the run has no number, repository or head")
	}
	run := forge.Run{
		ID: got.GetID(), Event: got.GetEvent(), Conclusion: got.GetConclusion(),
		CreatedAt: got.GetCreatedAt().Time, UpdatedAt: got.GetUpdatedAt().Time, HeadBranch: got.GetHeadBranch(), HeadCommit: got.GetHeadSHA(), Title: got.GetDisplayTitle(),
	}
	run.Workflow = workflowOf(got.Path, got.GetRepository().GetFullName())
	if head := got.GetHeadRepository(); head.GetID() > 0 {
		run.HeadRepository = &ledger.Repository{ID: strconv.FormatInt(head.GetID(), 10), Name: head.GetFullName()}
		run.HeadOwner = head.GetOwner().GetLogin()
	}
	run.RequestedBy = forge.StartedBy(run.Event, startedBy(got.Actor), startedBy(got.TriggeringActor))
	return run, nil
}

// startedBy is an account that a run names, nobody where it names none.
func startedBy(u *github.User) ledger.Actor {
	if u.GetID() <= 0 {
		return ledger.Actor{}
	}
	return (&account{Type: u.GetType(), Login: u.GetLogin(), DatabaseID: u.GetID()}).actor()
}

// workflowOf leaves out what GitHub puts around a path: its own repository's
// name before it, and the ref after it. Another repository's name stays, so that
// a workflow from there is not taken for one of this.
func workflowOf(told, repository string) string {
	told, _, _ = strings.Cut(told, "@")
	return strings.TrimPrefix(told, repository+"/")
}

// artifacts is rest.Artifacts'.
func (c *Client) artifacts(ctx context.Context, runID int64, name string) (all []rest.Artifact, err error) {
	type answer struct {
		Artifacts []rest.Artifact `json:"artifacts"`
	}
	err = pages(ctx, c, url.Values{"name": {name}}, func(got answer) (bool, error) {
		all = append(all, got.Artifacts...)
		return true, nil
	}, c.Below("actions", "runs", strconv.FormatInt(runID, 10), "artifacts")...)
	return all, err
}
