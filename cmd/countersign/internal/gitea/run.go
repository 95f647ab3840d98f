package gitea

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// workflowRun is a run as the API tells it, from Gitea 1.25 on. Path is the name of the
// workflow's file, without its folder, an @ and the ref that it ran for.
type workflowRun struct {
	ID         int64     `json:"id"`
	Title      string    `json:"display_title"`
	Path       string    `json:"path"`
	Event      string    `json:"event"`
	HeadSHA    string    `json:"head_sha"`
	Conclusion string    `json:"conclusion"`
	Started    time.Time `json:"started_at"`
	Completed  time.Time `json:"completed_at"`
}

// counted is a page of a list that has its number of entries beside them.
type counted struct {
	Total     *int            `json:"total_count"`
	Runs      []workflowRun   `json:"workflow_runs"`
	Artifacts []rest.Artifact `json:"artifacts"`
}

// pullRequest is the event that runs are asked for. The server compares it with the one
// that the workflow names, and tells the one that happened.
const pullRequest = "pull_request"

// longestRun is how much earlier than it ended a run may have begun.
const longestRun = 7 * 24 * time.Hour

var branchRef = canon.Regexp(`^[^@]+@refs/heads/(.+)$`)

var pullRef = canon.Regexp(`^[^@]+@refs/pull/([1-9][0-9]{0,9})/head$`)

// PullRuns is forge.Runs'. The number of a run's pull request is part of its ref, and
// tells what its head is. A server that does not list runs is one that the token may not
// ask: what a run left there is only found by its own event.
func (c *Client) PullRuns(ctx context.Context, commit string, since time.Time) ([]forge.Run, error) {
	const op = "looking for workflow runs of pull requests"
	query := url.Values{"event": {pullRequest}, "status": {"success"}}
	if commit != "" {
		if err := rest.CheckCommit(commit); err != nil {
			return nil, failed(op, err)
		}
		query.Set("head_sha", commit)
	}
	found, err := c.runs(ctx, query, since, func(run workflowRun) bool {
		of := run.Event == pullRequest || run.Event == pullRequest+"_sync" // the latter after a push
		return of && (commit == "" || run.HeadSHA == commit) && run.Conclusion == "success"
	})
	if err != nil {
		return nil, failed(op, err)
	}
	heads := map[int]pull{}
	var out []forge.Run
	for _, got := range found {
		run, err := c.pullRun(ctx, got, heads)
		if err != nil {
			return nil, failed(op, err)
		}
		if run.Workflow != "" {
			out = append(out, run)
		}
	}
	rest.SortRuns(out)
	return out, nil
}

// EndedRuns is forge.Runs'. The branch is part of a run's ref.
func (c *Client) EndedRuns(ctx context.Context, branch, conclusion string, since time.Time) ([]forge.Run, error) {
	const op = "looking for workflow runs"
	found, err := c.runs(ctx, url.Values{"status": {conclusion}}, since, func(run workflowRun) bool { return run.Conclusion == conclusion })
	if err != nil {
		return nil, failed(op, err)
	}
	var out []forge.Run
	for _, got := range found {
		run, err := got.run()
		if err != nil {
			return nil, failed(op, err)
		}
		if parts := branchRef().FindStringSubmatch(got.Path); parts != nil {
			run.HeadBranch = parts[1]
		}
		if branch == "" || run.HeadBranch == branch {
			out = append(out, run)
		}
	}
	rest.SortRuns(out)
	return out, nil
}

// runs lists those that ended after since and are to be kept, the newest first.
func (c *Client) runs(ctx context.Context, query url.Values, since time.Time, keep func(workflowRun) bool) (found []workflowRun, err error) {
	err = c.counted(ctx, query, func(got counted) (more bool) {
		more = true
		for _, run := range got.Runs {
			if run.Started.Before(since.Add(-longestRun)) {
				more = false // the newest are first
			}
			if keep(run) && !run.Completed.Before(since) {
				found = append(found, run)
			}
		}
		return more
	}, c.Below("actions", "runs")...)
	if rest.IsKind(err, rest.KindNotFound) {
		err = &rest.Error{Kind: rest.KindPermission, Message: "this server does not list workflow runs to the token; Gitea does from 1.25 on", Err: err}
	}
	return found, err
}

// run puts a run in our terms, but for its head's branch.
func (got workflowRun) run() (forge.Run, error) {
	if got.ID <= 0 || rest.CheckCommit(got.HeadSHA) != nil {
		return forge.Run{}, rest.Unusable("the run has no number or head")
	}
	name, _, _ := strings.Cut(got.Path, "@")
	return forge.Run{
		ID: got.ID, Workflow: ".github/workflows/" + name, Title: got.Title, Event: got.Event,
		Conclusion: got.Conclusion, HeadCommit: got.HeadSHA, CreatedAt: got.Started, UpdatedAt: got.Completed,
	}, nil
}

// pullRun puts a run of a pull request in our terms; one that is of no pull request has no Workflow. heads
// are the pull requests that were read.
func (c *Client) pullRun(ctx context.Context, got workflowRun, heads map[int]pull) (forge.Run, error) {
	parts := pullRef().FindStringSubmatch(got.Path)
	if parts == nil {
		return forge.Run{}, nil
	}
	run, err := got.run()
	if err != nil {
		return run, err
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return run, rest.Unusable("the run is of no pull request")
	}
	of, known := heads[number]
	if !known {
		if _, err := c.GetBelow(ctx, &of, nil, "pulls", parts[1]); err != nil {
			return forge.Run{}, err
		}
		heads[number] = of
	}
	run.Event = pullRequest
	if head := of.Head; head != nil && head.Label != "" {
		run.HeadBranch = head.Label
		if head.Repo != nil && head.Repo.ID > 0 && head.Repo.Owner != nil {
			run.HeadRepository = &ledger.Repository{ID: strconv.FormatInt(head.Repo.ID, 10), Name: head.Repo.FullName}
			run.HeadOwner = head.Repo.Owner.Login
		}
	}
	return run, nil
}

// counted hands over each page of a list, until take wants no more or all is there.
func (c *Client) counted(ctx context.Context, query url.Values, take func(counted) (more bool), parts ...string) error {
	seen := 0
	return rest.Pages(query, "limit", c.pageSize, func(_ int, asked url.Values) (bool, error) {
		var got counted
		if _, err := c.Get(ctx, &got, asked, parts...); err != nil {
			return false, err
		}
		if got.Total == nil {
			return false, rest.Unusable("the answer does not tell how many entries there are")
		}
		n := len(got.Runs) + len(got.Artifacts)
		seen += n
		more := take(got) && seen != *got.Total
		if more && (n == 0 || seen > *got.Total) {
			return false, rest.Changed("the list")
		}
		return more, nil
	})
}

// artifacts is rest.Artifacts'.
func (c *Client) artifacts(ctx context.Context, runID int64, name string) (all []rest.Artifact, err error) {
	err = c.counted(ctx, url.Values{"name": {name}}, func(got counted) bool {
		all = append(all, got.Artifacts...)
		return true
	}, c.Below("actions", "runs", strconv.FormatInt(runID, 10), "artifacts")...)
	return all, err
}
