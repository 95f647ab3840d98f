package github

import (
	"context"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

type openAnswer struct {
	Repository *struct {
		PullRequests *page[openNode] `json:"pullRequests"`
	} `json:"repository"`
}

type openNode struct {
	Number              int      `json:"number"`
	BaseRefName         string   `json:"baseRefName"`
	HeadRefName         string   `json:"headRefName"`
	HeadRefOid          string   `json:"headRefOid"`
	HeadRepositoryOwner *account `json:"headRepositoryOwner"`
	HeadRepository      *place   `json:"headRepository"`
}

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
func (c *Client) PullRequestsOf(ctx context.Context, head forge.Head) ([]int, error) {
	op := lookingFor(head)
	if head.Owner == "" || head.Branch == "" {
		return nil, failed(op, unusable("the head has no owner or no branch"))
	}
	open, err := c.open(ctx, op, head.Branch, head.Commit)
	var found []int
	for _, pr := range open {
		if isHead(pr.Head, head) {
			found = append(found, pr.Number)
		}
	}
	return found, failed(op, err)
}

func lookingFor(head forge.Head) string {
	return "looking for the pull request of " + ledger.OneLine(head.Owner+":"+head.Branch, 120)
}

// isHead compares repositories by their number, where that is known: it stays, and
// an owner's login can go to somebody else.
func isHead(h, want forge.Head) bool {
	if want.Repository != "" {
		return h.Repository == want.Repository
	}
	return strings.EqualFold(h.Owner, want.Owner)
}

// PullRequestsAt lists the open pull requests whose head is a commit, those from
// forks too. It goes through all that are open: what the REST API tells of a
// commit leaves out those from forks.
func (c *Client) PullRequestsAt(ctx context.Context, commit string) ([]forge.Open, error) {
	const op = "looking for the pull requests with the same head"
	open, err := c.open(ctx, op, "", commit)
	return open, failed(op, err)
}

// Open lists the open pull requests.
func (c *Client) Open(ctx context.Context) ([]forge.Open, error) {
	const op = "listing the open pull requests"
	nodes, err := c.readOpen(ctx, op, "")
	if isKind(err, KindChanged) {
		nodes, err = c.readOpen(ctx, op, "")
	}
	out := []forge.Open{}
	for _, n := range nodes {
		out = append(out, n.open())
	}
	return out, failed(op, err)
}

// open lists the open pull requests with a head commit, of one branch name or,
// for "", of all.
func (c *Client) open(ctx context.Context, op, branch, commit string) ([]forge.Open, error) {
	if err := checkCommit(commit); err != nil {
		return nil, err
	}
	nodes, err := c.readOpen(ctx, op, branch)
	if isKind(err, KindChanged) {
		nodes, err = c.readOpen(ctx, op, branch)
	}
	if err != nil {
		return nil, err
	}
	out := []forge.Open{}
	for _, n := range nodes {
		if n.HeadRefOid == commit && (branch == "" || n.HeadRefName == branch) {
			out = append(out, n.open())
		}
	}
	return out, nil
}

func (c *Client) readOpen(ctx context.Context, op, branch string) ([]openNode, error) {
	var open list[openNode]
	for !open.done {
		variables := map[string]any{"owner": c.owner, "name": c.name, "after": open.cursor}
		if branch != "" {
			variables["branch"] = branch
		}
		got, err := ask[openAnswer](ctx, c, op, queryOpen, variables)
		if err != nil {
			return nil, err
		}
		if got.Repository == nil {
			return nil, &Error{Kind: KindNotFound, Message: "there is no such repository"}
		}
		if err := open.add(got.Repository.PullRequests); err != nil {
			return nil, err
		}
	}
	for _, n := range open.nodes {
		if n.Number <= 0 || n.BaseRefName == "" || checkCommit(n.HeadRefOid) != nil {
			return nil, unusable("a pull request has no number, head or base")
		}
	}
	if !open.whole() {
		return nil, changed("the open pull requests")
	}
	return open.nodes, nil
}

func (n openNode) open() forge.Open {
	head := forge.Head{Branch: n.HeadRefName, Commit: n.HeadRefOid}
	if n.HeadRepositoryOwner != nil {
		head.Owner = n.HeadRepositoryOwner.Login
	}
	if n.HeadRepository != nil && n.HeadRepository.DatabaseID > 0 {
		head.Repository = strconv.FormatInt(n.HeadRepository.DatabaseID, 10)
	}
	return forge.Open{Number: n.Number, Base: n.BaseRefName, Head: head}
}
