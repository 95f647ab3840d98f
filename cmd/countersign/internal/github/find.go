package github

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/go-github/v60/github"

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

// pulls is rest.Pulls'. It goes through all: what the REST API tells of a
// commit leaves out those from forks.
func (c *Client) pulls(ctx context.Context, branch string, open bool) ([]forge.Open, error) {
	states := []string{"OPEN"}
	if !open {
		states = []string{"CLOSED", "MERGED"}
	}
	return twice(func() ([]forge.Open, error) { return c.readPulls(ctx, branch, states) })
}

// readPulls lists the pull requests in some of the states, of one branch name or, for
// "", of all.
func (c *Client) readPulls(ctx context.Context, branch string, states []string) ([]forge.Open, error) {
	type answer struct {
		Repository *struct {
			PullRequests *page[openNode] `json:"pullRequests"`
		} `json:"repository"`
	}
	nodes, err := readAll(func(after any) (*page[openNode], error) {
		variables := map[string]any{"owner": c.owner, "name": c.name, "states": states, "after": after}
		if branch != "" {
			variables["branch"] = branch
		}
		got, err := ask[answer](ctx, c, queryPulls, variables)
		if err == nil && got.Repository == nil {
			err = &Error{Kind: KindNotFound, Message: "there is no such repository"}
		}
		if err != nil {
			return nil, err
		}
		return got.Repository.PullRequests, nil
	})
	if err != nil {
		return nil, err
	}
	var open []forge.Open
	for _, n := range nodes.nodes {
		if n.Number <= 0 || n.BaseRefName == "" || checkCommit(n.HeadRefOid) != nil {
			return nil, unusable("a pull request has no number, head or base")
		}
		pr := forge.Open{Number: n.Number, Base: n.BaseRefName, Head: forge.Head{Branch: n.HeadRefName, Commit: n.HeadRefOid}}
		if n.HeadRepositoryOwner != nil && n.HeadRepository != nil && n.HeadRepository.DatabaseID > 0 { // else it was deleted
			pr.Head.Owner, pr.Head.Repository = n.HeadRepositoryOwner.Login, strconv.FormatInt(n.HeadRepository.DatabaseID, 10)
		}
		open = append(open, pr)
	}
	if !nodes.whole() {
		return nil, changed("the open pull requests")
	}
	return open, nil
}

// Merged is forge.Finder's. It goes through all that were ever merged: by the time of their
// last change, some could move past a page while another one is read.
func (c *Client) Merged(ctx context.Context, since time.Time) ([]forge.Merged, error) {
	merged, err := twice(func() ([]forge.Merged, error) { return c.readMerged(ctx, since) })
	return merged, failed("listing the merged pull requests", err)
}

func (c *Client) readMerged(ctx context.Context, since time.Time) ([]forge.Merged, error) {
	type node struct {
		Number   int        `json:"number"`
		MergedAt *time.Time `json:"mergedAt"`
	}
	type answer struct {
		Repository *struct {
			PullRequests *page[node] `json:"pullRequests"`
		} `json:"repository"`
	}
	nodes, err := readAll(func(after any) (*page[node], error) {
		got, err := ask[answer](ctx, c, queryMerged, map[string]any{"owner": c.owner, "name": c.name, "after": after})
		if err == nil && got.Repository == nil {
			err = &Error{Kind: KindNotFound, Message: "there is no such repository"}
		}
		if err != nil {
			return nil, err
		}
		return got.Repository.PullRequests, nil
	})
	if err != nil {
		return nil, err
	}
	if !nodes.whole() {
		return nil, changed("the merged pull requests")
	}
	out := []forge.Merged{}
	for _, n := range nodes.nodes {
		if n.Number <= 0 || n.MergedAt == nil || n.MergedAt.IsZero() {
			return nil, unusable("a merged pull request has no number, or no time at which it was merged")
		}
		if !n.MergedAt.Before(since) {
			out = append(out, forge.Merged{Number: n.Number, At: *n.MergedAt})
		}
	}
	return out, nil
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
		err = unusable("%d repositories are counted, and %d are there", total, len(out))
	}
	if err != nil {
		return nil, failed("listing the repositories of the app's installation", err)
	}
	return out, nil
}

// StartWorkflow starts a workflow, named by its file, on a branch of any
// repository that the token reaches. Where there is no such workflow the error
// is of KindNotFound.
func (c *Client) StartWorkflow(ctx context.Context, repository, file, branch string) error {
	op := fmt.Sprintf("starting %s in %+q", file, repository)
	owner, name, ok := splitRepository(repository)
	if !ok {
		return failed(op, unusable("it is not a repository"))
	}
	return failed(op, c.post(ctx, map[string]string{"ref": branch}, "repos", owner, name, "actions", "workflows", file, "dispatches"))
}
