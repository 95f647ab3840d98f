package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

var _ forge.Reviews = (*Client)(nil)

// OpenIssues is forge.Issues's. GitHub lists pull requests among issues.
func (c *Client) OpenIssues(ctx context.Context) ([]forge.Issue, error) {
	return c.issues(ctx, url.Values{"state": {"open"}, "sort": {"created"}, "direction": {"asc"}}, true)
}

// ClosedIssues is forge.Issues's.
func (c *Client) ClosedIssues(ctx context.Context) ([]forge.Issue, error) {
	return c.issues(ctx, url.Values{"state": {"closed"}, "sort": {"updated"}, "direction": {"desc"}}, false)
}

func (c *Client) issues(ctx context.Context, query url.Values, all bool) ([]forge.Issue, error) {
	var out []forge.Issue
	err := pages(ctx, c, query, func(got []*github.Issue) (bool, error) {
		for _, one := range got {
			if one.IsPullRequest() {
				continue
			}
			read, err := issue(one)
			if err != nil {
				return false, err
			}
			out = append(out, read)
		}
		return all, nil
	}, c.Below("issues")...)
	if err != nil {
		return nil, failed("reading the "+query.Get("state")+" issues", err)
	}
	return out, nil
}

// issue reads one; the author of an account that was deleted is nobody's.
func issue(got *github.Issue) (forge.Issue, error) {
	state := got.GetState()
	if got.GetNumber() <= 0 || state != "open" && state != "closed" {
		return forge.Issue{}, rest.Unusable("an issue has no number, or the state %+q", ledger.OneLine(state, 40))
	}
	read := forge.Issue{Number: got.GetNumber(), Title: got.GetTitle(), Body: got.GetBody(), Open: state == "open", URL: got.GetHTMLURL()}
	if id := got.GetUser().GetID(); id > 0 {
		read.Author = ledger.Actor{Kind: "user", ID: strconv.FormatInt(id, 10), Login: got.GetUser().GetLogin()}
	}
	return read, nil
}

// CreateIssue is forge.Issues's.
func (c *Client) CreateIssue(ctx context.Context, title, body string) (forge.Issue, error) {
	got := new(github.Issue)
	err := c.post(ctx, got, map[string]string{"title": title, "body": body}, c.Below("issues")...)
	var made forge.Issue
	if err == nil {
		made, err = issue(got)
	}
	return made, failed("opening an issue", err)
}

// UpdateIssue is forge.Issues's.
func (c *Client) UpdateIssue(ctx context.Context, i forge.Issue) error {
	state := "closed"
	if i.Open {
		state = "open"
	}
	body := map[string]string{"title": i.Title, "body": i.Body, "state": state}
	_, err := c.Send(ctx, http.MethodPatch, nil, body, nil, c.Below("issues", strconv.Itoa(i.Number))...)
	return failed(fmt.Sprintf("changing issue %d", i.Number), err)
}

// IssueComment is forge.Reviews's.
func (c *Client) IssueComment(ctx context.Context, issue int, id string) (approval.Statement, error) {
	c.Forget()
	one, err := c.issueComment(ctx, issue, id)
	return one, failed(fmt.Sprintf("reading a comment on issue %d", issue), err)
}

func (c *Client) issueComment(ctx context.Context, issue int, id string) (none approval.Statement, err error) {
	posted, err := c.postedComments(ctx, issue)
	if err != nil {
		return none, err
	}
	p, is := posted[id]
	if !is {
		return none, &rest.Error{Kind: rest.KindNotFound, Message: "there is no such comment"}
	}
	got, err := ask[struct{ Nodes []*said }](ctx, c, queryComments, map[string]any{"ids": []string{p.NodeID}})
	switch {
	case err != nil:
		return none, err
	case len(got.Nodes) != 1 || got.Nodes[0] == nil || got.Nodes[0].ID != p.NodeID || string(got.Nodes[0].FullDatabaseID) != id:
		return none, rest.Unusable("it is not the comment that was asked for")
	}
	said := ofKind([]said{*got.Nodes[0]}, approval.KindIssueComment)
	if said[0].CreatedAt == "" || said[0].untold() {
		return none, rest.Unusable("it is not told when it was made, whether it is edited, came by e-mail or is hidden")
	}
	histories, err := c.histories(ctx, said)
	one := said[0].statement(histories[p.NodeID])
	one.App = p.app()
	return one, err
}

// CommitAuthors is forge.Reviews's.
func (c *Client) CommitAuthors(ctx context.Context, commit string) ([]ledger.Actor, bool, error) {
	type answer struct {
		Repository struct {
			Object *commitAuthors `json:"object"`
		} `json:"repository"`
	}
	got, err := ask[answer](ctx, c, queryCommit, map[string]any{"owner": c.Owner, "name": c.Name, "commit": commit})
	var all []ledger.Actor
	strangers := true
	switch {
	case err == nil && (got.Repository.Object == nil || got.Repository.Object.Oid != commit):
		err = &rest.Error{Kind: rest.KindNotFound, Message: "there is no such commit"}
	case err == nil:
		all, strangers, err = committers([]commitNode{{*got.Repository.Object}})
	}
	return all, strangers, failed("asking who wrote a commit", err)
}
