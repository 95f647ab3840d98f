package github

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

const (
	maxPaths   = 3000 // GitHub shows no more files of a diff
	maxCommits = 5000
	// shownCommits is how many commits GitHub shows of a pull request at most
	// (REST API, "List commits on a pull request").
	shownCommits = 250
)

type pullAnswer struct {
	Repository *struct {
		place
		PullRequest *pullNode `json:"pullRequest"`
	} `json:"repository"`
}

type pullNode struct {
	Number              int                `json:"number"`
	State               string             `json:"state"`
	IsDraft             bool               `json:"isDraft"`
	Title               string             `json:"title"`
	MaintainerCanModify bool               `json:"maintainerCanModify"`
	Author              *account           `json:"author"`
	HeadRepository      *place             `json:"headRepository"`
	HeadRefName         string             `json:"headRefName"`
	HeadRefOid          string             `json:"headRefOid"`
	BaseRefName         string             `json:"baseRefName"`
	BaseRefOid          string             `json:"baseRefOid"`
	MergeCommit         *object            `json:"mergeCommit"`
	Commits             *page[commitNode]  `json:"commits"`
	Files               *page[changedFile] `json:"files"`
}

// place is a repository as GraphQL tells it.
type place struct {
	DatabaseID    int64   `json:"databaseId"`
	NameWithOwner string  `json:"nameWithOwner"`
	Owner         account `json:"owner"`
}

type object struct {
	Oid string `json:"oid"`
}

type changedFile struct {
	Path string `json:"path"`
}

// PullRequest is forge.Reader's. Committers has the author and the committer
// of each commit, without GitHub itself; who is only named in a commit's text
// is not among them. Strangers is also true where there are so many commits that
// GitHub may not show them all.
func (c *Client) PullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	op := fmt.Sprintf("reading pull request %d", number)
	pr, err := c.pullRequest(ctx, op, number)
	if isKind(err, KindChanged) {
		pr, err = c.pullRequest(ctx, op, number)
	}
	if err == nil && !pr.Fork() {
		pr.Head.Protected, err = c.protected(ctx, pr.Head.Branch)
	}
	if err != nil {
		return forge.PullRequest{}, failed(op, err)
	}
	return pr, nil
}

// A pullReading is a pull request as far as it was read.
type pullReading struct {
	in      place
	first   *pullNode
	commits list[commitNode]
	files   list[changedFile]
}

// pullRequest reads all pages of one state of the pull request.
func (c *Client) pullRequest(ctx context.Context, op string, number int) (forge.PullRequest, error) {
	var r pullReading
	for !r.commits.done || !r.files.done {
		got, err := ask[pullAnswer](ctx, c, op, queryPullRequest, map[string]any{
			"owner": c.owner, "name": c.name, "number": number, "commits": !r.commits.done, "files": !r.files.done,
			"afterCommit": r.commits.cursor, "afterFile": r.files.cursor,
		})
		if err != nil {
			return forge.PullRequest{}, err
		}
		if got.Repository == nil || got.Repository.PullRequest == nil {
			return forge.PullRequest{}, &Error{Kind: KindNotFound, Message: "there is no such pull request"}
		}
		r.in = got.Repository.place
		if err := r.add(got.Repository.PullRequest); err != nil {
			return forge.PullRequest{}, err
		}
	}
	pr, err := c.pullRequestOf(number, &r.in, r.first)
	pr.Committers, pr.Strangers = committers(r.commits.nodes)
	pr.Strangers = pr.Strangers || !r.commits.whole() || len(r.commits.nodes) >= shownCommits
	for _, f := range r.files.nodes[:min(len(r.files.nodes), maxPaths)] {
		pr.Paths = append(pr.Paths, f.Path)
	}
	return pr, err
}

func (r *pullReading) add(n *pullNode) error {
	if r.first == nil {
		r.first = n
	}
	if n.HeadRefOid != r.first.HeadRefOid {
		return changed("the commits")
	}
	if err := r.commits.add(n.Commits); err != nil {
		return err
	}
	if n.Files == nil {
		r.files.done = true // a diff that is too large to be shown
	}
	if err := r.files.add(n.Files); err != nil {
		return err
	}
	r.files.done = r.files.done || len(r.files.nodes) >= maxPaths
	if len(r.commits.nodes) > maxCommits {
		return unusable("there are more than %d commits", maxCommits)
	}
	return nil
}

// pullRequestOf puts what was told in our terms, but for the lists.
func (c *Client) pullRequestOf(number int, in *place, n *pullNode) (forge.PullRequest, error) {
	pr := forge.PullRequest{
		Number: number, State: strings.ToLower(n.State), Draft: n.IsDraft, Title: n.Title, Author: n.Author.actor(),
		MaintainerCanModify: n.MaintainerCanModify, Paths: []string{},
	}
	states := []string{forge.PullRequestOpen, forge.PullRequestClosed, forge.PullRequestMerged}
	switch {
	case n.Number != number || !slices.Contains(states, pr.State):
		return pr, unusable("it is of another pull request, or of no known state")
	case checkCommit(n.HeadRefOid) != nil || checkCommit(n.BaseRefOid) != nil || n.HeadRefName == "" || n.BaseRefName == "":
		return pr, unusable("head or base of the pull request is missing")
	}
	if n.MergeCommit != nil && pr.State == forge.PullRequestMerged {
		pr.MergeCommit = n.MergeCommit.Oid
	}
	var err error
	if pr.Base, err = c.side(in, n.BaseRefName, n.BaseRefOid); err != nil {
		return pr, err
	}
	pr.Repository = *pr.Base.Repository
	pr.Head, err = c.side(n.HeadRepository, n.HeadRefName, n.HeadRefOid)
	return pr, err
}

// side builds the address to clone from ourselves: what is pushed there goes
// with a token.
func (c *Client) side(at *place, branch, commit string) (forge.Side, error) {
	side := forge.Side{Branch: branch, Commit: commit}
	if at == nil {
		return side, nil
	}
	if _, _, ok := splitRepository(at.NameWithOwner); !ok || at.DatabaseID <= 0 {
		return side, unusable("a repository of the pull request has no name or number")
	}
	side.Repository = &ledger.Repository{ID: strconv.FormatInt(at.DatabaseID, 10), Name: at.NameWithOwner}
	side.Owner = at.Owner.Type
	side.CloneURL = c.server + "/" + at.NameWithOwner + ".git"
	return side, nil
}

// protected asks whether a branch is; one that is not there is not.
func (c *Client) protected(ctx context.Context, branch string) (bool, error) {
	var got struct {
		Protected *bool `json:"protected"`
	}
	_, err := c.inRepository(ctx, &got, nil, "branches", branch)
	switch {
	case isKind(err, KindNotFound):
		return false, nil
	case err != nil:
		return false, err
	case got.Protected == nil:
		return false, unusable("the answer does not tell whether the branch is protected")
	}
	return *got.Protected, nil
}
