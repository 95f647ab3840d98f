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
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

var _ forge.Issues = (*Client)(nil)

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
