package github

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

type runAnswer struct {
	ID         int64           `json:"id"`
	Attempt    int             `json:"run_attempt"`
	Path       string          `json:"path"`
	Event      string          `json:"event"`
	Status     string          `json:"status"`
	Conclusion string          `json:"conclusion"`
	HeadBranch string          `json:"head_branch"`
	HeadSHA    string          `json:"head_sha"`
	Repository *repositoryPart `json:"repository"`
	Head       *repositoryPart `json:"head_repository"`
	UpdatedAt  time.Time       `json:"updated_at"`
}

type repositoryPart struct {
	ID       int64  `json:"id"`
	FullName string `json:"full_name"`
	Owner    struct {
		Login string `json:"login"`
	} `json:"owner"`
}

// Run reads a workflow run of the repository.
func (c *Client) Run(ctx context.Context, id int64) (forge.Run, error) {
	op := fmt.Sprintf("reading workflow run %d", id)
	var got runAnswer
	if _, err := c.inRepository(ctx, &got, nil, "actions", "runs", strconv.FormatInt(id, 10)); err != nil {
		return forge.Run{}, failed(op, err)
	}
	if got.ID != id {
		return forge.Run{}, failed(op, unusable("it is another run"))
	}
	run, err := got.run()
	return run, failed(op, err)
}

// PullRuns lists the workflow runs of pull requests that succeeded, in the order in
// which they ended: those on a commit or, for "", those that ended after since. The
// answers have the newest first.
func (c *Client) PullRuns(ctx context.Context, commit string, since time.Time) ([]forge.Run, error) {
	op := "looking for workflow runs of pull requests"
	query := url.Values{"event": {"pull_request"}, "status": {"success"}, "per_page": {"100"}}
	if commit != "" {
		if err := checkCommit(commit); err != nil {
			return nil, failed(op, err)
		}
		query.Set("head_sha", commit)
	}
	var out []forge.Run
	err := allPages(func(page int) (*github.Response, error) {
		var got struct {
			Runs []runAnswer `json:"workflow_runs"`
		}
		query.Set("page", strconv.Itoa(page))
		resp, err := c.inRepository(ctx, &got, query, "actions", "runs")
		for _, answer := range got.Runs {
			run, runErr := answer.run()
			if runErr != nil {
				return nil, runErr
			}
			switch {
			case run.UpdatedAt.Before(since):
				resp.NextPage = 0
			case (commit == "" || run.HeadCommit == commit) && run.Event == "pull_request" && run.Conclusion == "success":
				out = append(out, run)
			}
		}
		return resp, err
	})
	slices.SortFunc(out, func(a, b forge.Run) int { return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ID, b.ID)) })
	return out, failed(op, err)
}

func (got runAnswer) run() (forge.Run, error) {
	if got.ID <= 0 || got.Repository == nil || checkCommit(got.HeadSHA) != nil {
		return forge.Run{}, unusable("the run has no number, repository or head")
	}
	run := forge.Run{
		ID: got.ID, Attempt: got.Attempt, Event: got.Event, Status: got.Status, Conclusion: got.Conclusion, UpdatedAt: got.UpdatedAt,
		HeadBranch: got.HeadBranch, HeadCommit: got.HeadSHA, Workflow: workflowOf(got.Path, got.Repository.FullName),
	}
	if got.Head != nil && got.Head.ID > 0 {
		run.HeadRepository = &ledger.Repository{ID: strconv.FormatInt(got.Head.ID, 10), Name: got.Head.FullName}
		run.HeadOwner = got.Head.Owner.Login
	}
	return run, nil
}

// workflowOf leaves out what GitHub puts around a path: its own repository's
// name before it, and the ref after it. Another repository's name stays, so that
// a workflow from there is not taken for one of this.
func workflowOf(told, repository string) string {
	told, _, _ = strings.Cut(told, "@")
	return strings.TrimPrefix(told, repository+"/")
}
