package github

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

type openNode struct {
	Number              int      `json:"number"`
	BaseRefName         string   `json:"baseRefName"`
	HeadRefName         string   `json:"headRefName"`
	HeadRefOid          string   `json:"headRefOid"`
	HeadRepositoryOwner *account `json:"headRepositoryOwner"`
	HeadRepository      *place   `json:"headRepository"`
}

// readPulls reads a list of the repository's pull requests to its end, that query asks for.
func readPulls[T any](ctx context.Context, c *Client, query string, narrowed map[string]any) ([]T, error) {
	type answer struct {
		Repository *struct {
			PullRequests *page[T] `json:"pullRequests"`
		} `json:"repository"`
	}
	return rest.Twice(func() ([]T, error) {
		return readAll("the pull requests", func(after any) (*page[T], error) {
			variables := map[string]any{"owner": c.Owner, "name": c.Name, "after": after}
			maps.Copy(variables, narrowed)
			got, err := ask[answer](ctx, c, query, variables)
			if err == nil && got.Repository == nil {
				err = &rest.Error{Kind: rest.KindNotFound, Message: "there is no such repository"}
			}
			if err != nil {
				return nil, err
			}
			return got.Repository.PullRequests, nil
		})
	})
}

// pulls is rest.Pulls'. It goes through all: what the REST API tells of a
// commit leaves out those from forks.
func (c *Client) pulls(ctx context.Context, branch string, isOpen bool) ([]forge.Open, error) {
	narrowed := map[string]any{"states": []string{"OPEN"}}
	if !isOpen {
		narrowed["states"] = []string{"CLOSED", "MERGED"}
	}
	if branch != "" {
		narrowed["branch"] = branch
	}
	nodes, err := readPulls[openNode](ctx, c, queryPulls, narrowed)
	if err != nil {
		return nil, err
	}
	var open []forge.Open
	for _, n := range nodes {
		if n.Number <= 0 || n.BaseRefName == "" || rest.CheckCommit(n.HeadRefOid) != nil {
			return nil, rest.Unusable("a pull request has no number, head or base")
		}
		pr := forge.Open{Number: n.Number, Base: n.BaseRefName, Head: forge.Head{Branch: n.HeadRefName, Commit: n.HeadRefOid}}
		if n.HeadRepositoryOwner != nil && n.HeadRepository != nil && n.HeadRepository.DatabaseID > 0 { // else it was deleted
			pr.Head.Owner, pr.Head.Repository = n.HeadRepositoryOwner.Login, strconv.FormatInt(n.HeadRepository.DatabaseID, 10)
		}
		open = append(open, pr)
	}
	return open, nil
}

// merged is rest.Pulls'. It goes through all that were ever merged: by the time of their
// last change, some could move past a page while another one is read.
func (c *Client) merged(ctx context.Context) ([]forge.Merged, error) {
	type node struct {
		Number   int        `json:"number"`
		MergedAt *time.Time `json:"mergedAt"`
	}
	nodes, err := readPulls[node](ctx, c, queryMerged, nil)
	var out []forge.Merged
	for _, n := range nodes {
		if n.MergedAt == nil {
			n.MergedAt = new(time.Time)
		}
		out = append(out, forge.Merged{Number: n.Number, At: *n.MergedAt})
	}
	return out, err
}

// An Installed repository is one that an app's installation, whose token the
// client has, may act in.
type Installed struct {
	Name   string // "owner/name"
	Branch string // the default one
	Closed bool   // archived, or disabled: nothing runs there
}

// Installed lists the repositories of the token's installation.
func (c *Client) Installed(ctx context.Context) ([]Installed, error) {
	out := []Installed{}
	total := 0
	err := pages(ctx, c, nil, func(got github.ListRepositories) (bool, error) {
		total = got.GetTotalCount()
		for _, r := range got.Repositories {
			out = append(out, Installed{r.GetFullName(), r.GetDefaultBranch(), r.GetArchived() || r.GetDisabled()})
		}
		return true, nil
	}, "installation", "repositories")
	if err == nil && len(out) != total {
		err = rest.Unusable("%d repositories are counted, and %d are there", total, len(out))
	}
	if err != nil {
		return nil, failed("listing the repositories of the app's installation", err)
	}
	return out, nil
}

// StartWorkflow starts a workflow, named by its file, on a branch of any
// repository that the token reaches. Where there is no such workflow the error
// is of rest.KindNotFound.
func (c *Client) StartWorkflow(ctx context.Context, repository, file, branch string) error {
	op := fmt.Sprintf("starting %s in %+q", file, repository)
	owner, name, ok := rest.SplitRepository(repository)
	if !ok {
		return failed(op, rest.Unusable("it is not a repository"))
	}
	return failed(op, c.post(ctx, nil, map[string]string{"ref": branch}, "repos", owner, name, "actions", "workflows", file, "dispatches"))
}
