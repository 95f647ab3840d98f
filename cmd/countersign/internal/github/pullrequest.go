package github

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
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
	MergedAt            *time.Time         `json:"mergedAt"`
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

// pullRequest is rest.Repository's, and reads all pages of one state of the pull request.
// Committers has the authors, those of its trailers Co-authored-by as well, and the
// committer of each commit, without GitHub itself. Strangers is also true where there are
// so many commits that GitHub may not show them all.
func (c *Client) pullRequest(ctx context.Context, number int) (forge.PullRequest, error) {
	var none forge.PullRequest
	var in place
	var first *pullNode
	var commits list[commitNode]
	var files list[changedFile]
	for !commits.done || !files.done {
		got, err := ask[pullAnswer](ctx, c, queryPullRequest, map[string]any{
			"owner": c.Owner, "name": c.Name, "number": number, "commits": !commits.done, "files": !files.done,
			"afterCommit": commits.cursor, "afterFile": files.cursor,
		})
		if err != nil {
			return none, err
		}
		if got.Repository == nil || got.Repository.PullRequest == nil {
			return none, &rest.Error{Kind: rest.KindNotFound, Message: "there is no such pull request"}
		}
		n := got.Repository.PullRequest
		in, first = got.Repository.place, cmp.Or(first, n)
		if n.HeadRefOid != first.HeadRefOid {
			return none, rest.Changed("the commits")
		}
		if n.Files == nil {
			files.done = true // a diff that is too large to be shown
		}
		if err := cmp.Or(commits.add(n.Commits), files.add(n.Files)); err != nil {
			return none, err
		}
		files.done = files.done || len(files.nodes) >= maxPaths
		if len(commits.nodes) > maxCommits {
			return none, rest.Unusable("there are more than %d commits", maxCommits)
		}
	}
	if !commits.whole() && len(commits.nodes) < shownCommits { // who wrote one that is missing might approve it
		return none, rest.Changed("the commits")
	}
	pr, err := c.pullRequestOf(number, &in, first)
	if err != nil {
		return pr, err
	}
	pr.Committers, pr.Strangers, err = committers(commits.nodes)
	pr.Strangers = pr.Strangers || !commits.whole() || len(commits.nodes) >= shownCommits
	for _, f := range files.nodes[:min(len(files.nodes), maxPaths)] {
		pr.Paths = append(pr.Paths, f.Path)
	}
	return pr, err
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
		return pr, rest.Unusable("it is of another pull request, or of no known state")
	case rest.CheckCommit(n.HeadRefOid) != nil || rest.CheckCommit(n.BaseRefOid) != nil || n.HeadRefName == "" || n.BaseRefName == "":
		return pr, rest.Unusable("head or base of the pull request is missing")
	}
	if pr.State == forge.PullRequestMerged {
		if n.MergedAt == nil || n.MergeCommit != nil && rest.CheckCommit(n.MergeCommit.Oid) != nil {
			return pr, rest.Unusable("it was merged, and when or as which commit cannot be read")
		}
		if pr.MergedAt = n.MergedAt.UTC().Format(time.RFC3339); n.MergeCommit != nil {
			pr.MergeCommit = n.MergeCommit.Oid
		}
	}
	var err error
	if pr.Base, err = c.side(in, n.BaseRefName, n.BaseRefOid); err != nil {
		return pr, err
	}
	pr.Repository = *pr.Base.Repository
	pr.Head, err = c.side(n.HeadRepository, n.HeadRefName, n.HeadRefOid)
	return pr, err
}

func (c *Client) side(at *place, branch, commit string) (forge.Side, error) {
	side := forge.Side{Branch: branch, Commit: commit}
	if at == nil {
		return side, nil
	}
	side.Owner = at.Owner.Type
	return side, c.SetRepository(&side, at.DatabaseID, at.NameWithOwner)
}

// MergeBase is where the histories of two commits parted, by GitHub's word (REST
// API, "Compare two commits"). Two without a common ancestor are not found.
func (c *Client) MergeBase(ctx context.Context, one, other string) (string, error) {
	op := fmt.Sprintf("asking for the merge base of %.12s and %.12s", one, other)
	if err := cmp.Or(rest.CheckCommit(one), rest.CheckCommit(other)); err != nil {
		return "", failed(op, err)
	}
	var got struct {
		Base      struct{ SHA string } `json:"base_commit"`
		MergeBase struct{ SHA string } `json:"merge_base_commit"`
	}
	// Every page has the merge base; of the commits between, none is looked at.
	_, err := c.GetBelow(ctx, &got, url.Values{"per_page": {"1"}}, "compare", one+"..."+other)
	if err == nil && (got.Base.SHA != one || rest.CheckCommit(got.MergeBase.SHA) != nil) {
		err = rest.Unusable("the answer is of other commits, or has no merge base")
	}
	if err != nil {
		return "", failed(op, err)
	}
	return got.MergeBase.SHA, nil
}

func (c *Client) protected(ctx context.Context, branch string) (bool, error) {
	return c.IsProtected(ctx, branch)
}

// webFlow is GitHub itself, the committer of what is made in the browser.
const webFlow = "web-flow"

type commitNode struct {
	Commit commitAuthors `json:"commit"`
}

type commitAuthors struct {
	Oid       string    `json:"oid"` // where that was asked for
	Author    *gitActor `json:"author"`
	Committer *gitActor `json:"committer"`
	Authors   *struct { // the author, and co-authors by the message
		TotalCount int         `json:"totalCount"`
		Nodes      []*gitActor `json:"nodes"`
	} `json:"authors"`
}

type gitActor struct {
	User *account `json:"user"`
}

// committers lists each account once. Of authors nobody may be missing.
func committers(commits []commitNode) (accounts []ledger.Actor, strangers bool, err error) {
	accounts = []ledger.Actor{}
	for _, n := range commits {
		authors := n.Commit.Authors
		if authors == nil || authors.TotalCount != len(authors.Nodes) {
			return nil, true, rest.Unusable("not all authors of a commit are told")
		}
		for i, by := range slices.Concat([]*gitActor{n.Commit.Author, n.Commit.Committer}, authors.Nodes) {
			if by == nil || by.User == nil || by.User.DatabaseID <= 0 {
				strangers = true
				continue
			}
			by.User.Type = typeUser // the field's type; apps are known by their login
			isCommitter := i == 1
			if who := by.User.actor(); !(isCommitter && who.Login == webFlow) && !slices.Contains(accounts, who) {
				accounts = append(accounts, who)
			}
		}
	}
	return accounts, strangers, nil
}
