package github

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// PullRequestOf returns the number of the one open pull request with this head,
// and 0 if there is none, as after a push. Several, which differ in their base,
// are an error.
func (c *Client) PullRequestOf(ctx context.Context, head forge.Head) (int, error) {
	found, err := c.PullRequestsOf(ctx, head)
	switch {
	case err != nil || len(found) == 0:
		return 0, err
	case len(found) > 1:
		return 0, failed(lookingFor(head), unusable("it is the head of pull requests %d and %d", found[0], found[1]))
	}
	return found[0], nil
}

// PullRequestsOf returns the numbers of the open pull requests with this head.
// Repositories are compared by their number, where that is known: it stays, and
// an owner's login can go to somebody else.
func (c *Client) PullRequestsOf(ctx context.Context, head forge.Head) ([]int, error) {
	if head.Owner == "" || head.Branch == "" {
		return nil, failed(lookingFor(head), unusable("the head has no owner or no branch"))
	}
	open, err := c.openAt(ctx, head.Branch, head.Commit)
	return ofHead(open, head), failed(lookingFor(head), err)
}

// ClosedOf is forge.Finder's.
func (c *Client) ClosedOf(ctx context.Context, head forge.Head) (int, error) {
	if head.Owner == "" || head.Branch == "" || checkCommit(head.Commit) != nil {
		return 0, failed(lookingFor(head), unusable("the head has no owner, branch or commit"))
	}
	closed, err := twice(func() ([]forge.Open, error) { return c.readPulls(ctx, head.Branch, "CLOSED", "MERGED") })
	closed = slices.DeleteFunc(closed, func(pr forge.Open) bool { return pr.Head.Commit != head.Commit || pr.Head.Branch != head.Branch })
	return slices.Max(append(ofHead(closed, head), 0)), failed(lookingFor(head), err)
}

// ofHead returns the numbers of the pull requests whose head is in the repository of
// another.
func ofHead(all []forge.Open, head forge.Head) (found []int) {
	for _, pr := range all {
		same := strings.EqualFold(pr.Head.Owner, head.Owner)
		if head.Repository != "" {
			same = pr.Head.Repository == head.Repository
		}
		if same {
			found = append(found, pr.Number)
		}
	}
	return found
}

func lookingFor(head forge.Head) string {
	return "looking for the pull request of " + ledger.OneLine(head.Owner+":"+head.Branch, 120)
}

// PullRequestsAt lists the open pull requests whose head is a commit, those from
// forks too. It goes through all that are open: what the REST API tells of a
// commit leaves out those from forks.
func (c *Client) PullRequestsAt(ctx context.Context, commit string) ([]forge.Open, error) {
	open, err := c.openAt(ctx, "", commit)
	return open, failed("looking for the pull requests with the same head", err)
}

// Open lists the open pull requests.
func (c *Client) Open(ctx context.Context) ([]forge.Open, error) {
	open, err := twice(func() ([]forge.Open, error) { return c.readOpen(ctx, "") })
	return append([]forge.Open{}, open...), failed("listing the open pull requests", err)
}

// openAt lists the open pull requests with a head commit, of one branch name or,
// for "", of all.
func (c *Client) openAt(ctx context.Context, branch, commit string) ([]forge.Open, error) {
	if err := checkCommit(commit); err != nil {
		return nil, err
	}
	open, err := twice(func() ([]forge.Open, error) { return c.readOpen(ctx, branch) })
	if err != nil {
		return nil, err
	}
	out := []forge.Open{}
	for _, pr := range open {
		if pr.Head.Commit == commit && (branch == "" || pr.Head.Branch == branch) {
			out = append(out, pr)
		}
	}
	return out, nil
}

type openNode struct {
	Number              int      `json:"number"`
	BaseRefName         string   `json:"baseRefName"`
	HeadRefName         string   `json:"headRefName"`
	HeadRefOid          string   `json:"headRefOid"`
	HeadRepositoryOwner *account `json:"headRepositoryOwner"`
	HeadRepository      *place   `json:"headRepository"`
}

func (c *Client) readOpen(ctx context.Context, branch string) ([]forge.Open, error) {
	return c.readPulls(ctx, branch, "OPEN")
}

// readPulls lists the pull requests in some of the states, of one branch name or, for
// "", of all.
func (c *Client) readPulls(ctx context.Context, branch string, states ...string) ([]forge.Open, error) {
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
