package github

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A Run is a workflow run. Workflow is the path of its file in the repository.
// HeadRepository is nil where that was deleted.
type Run struct {
	ID             int64
	Attempt        int
	Workflow       string
	Event          string
	Status         string
	Conclusion     string // "" while it is not completed
	HeadRepository *ledger.Repository
	HeadOwner      string
	HeadBranch     string
	HeadCommit     string
}

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
}

type repositoryPart struct {
	ID       int64  `json:"id"`
	FullName string `json:"full_name"`
	Owner    struct {
		Login string `json:"login"`
	} `json:"owner"`
}

// Run reads a workflow run of the repository.
func (c *Client) Run(ctx context.Context, id int64) (Run, error) {
	op := fmt.Sprintf("reading workflow run %d", id)
	var got runAnswer
	if _, err := c.inRepository(ctx, &got, nil, "actions", "runs", strconv.FormatInt(id, 10)); err != nil {
		return Run{}, failed(op, err)
	}
	if got.ID != id || got.Repository == nil || checkCommit(got.HeadSHA) != nil {
		return Run{}, failed(op, unusable("the run has no number, repository or head"))
	}
	run := Run{
		ID: id, Attempt: got.Attempt, Event: got.Event, Status: got.Status, Conclusion: got.Conclusion,
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
