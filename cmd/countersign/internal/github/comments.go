package github

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/canon"
)

// CreateReviewComment comments on a file of a pull request's diff as a whole,
// which opens a thread. The path must be in the diff, the commit its head.
func (c *Client) CreateReviewComment(ctx context.Context, number int, commit, path, body string) (approval.Posted, error) {
	op := fmt.Sprintf("asking on pull request %d", number)
	if err := checkCommit(commit); err != nil {
		return approval.Posted{}, failed(op, err)
	}
	got, _, err := c.api.PullRequests.CreateComment(ctx, c.owner, c.name, number, &github.PullRequestComment{
		Body: &body, CommitID: &commit, Path: &path, SubjectType: github.String("file"),
	})
	if err != nil {
		return approval.Posted{}, failed(op, err)
	}
	p, err := posted(approval.KindReviewComment, got.GetID(), got.GetHTMLURL(), got.Body)
	return p, failed(op, err)
}

// UpsertComment replaces the text of a conversation comment, or posts a new one
// where the id is "" or the comment was deleted.
func (c *Client) UpsertComment(ctx context.Context, number int, id, body string) (approval.Posted, error) {
	op := fmt.Sprintf("commenting on pull request %d", number)
	comment := &github.IssueComment{Body: &body}
	var got *github.IssueComment
	create := id == ""
	var err error
	if !create {
		n, problem := strconv.ParseInt(id, 10, 64)
		if problem != nil || n <= 0 {
			return approval.Posted{}, failed(op, unusable("%+q is no number of a comment", id))
		}
		got, _, err = c.api.Issues.EditComment(ctx, c.owner, c.name, n, comment)
		create = isKind(err, KindNotFound)
	}
	if create {
		got, _, err = c.api.Issues.CreateComment(ctx, c.owner, c.name, number, comment)
	}
	if err != nil {
		return approval.Posted{}, failed(op, err)
	}
	p, err := posted(approval.KindIssueComment, got.GetID(), got.GetHTMLURL(), got.Body)
	return p, failed(op, err)
}

// posted takes the body as it was returned: GitHub may have changed it.
func posted(kind string, id int64, url string, body *string) (approval.Posted, error) {
	if id <= 0 || body == nil {
		return approval.Posted{}, unusable("the comment has no number or no text")
	}
	return approval.Posted{Kind: kind, ID: strconv.FormatInt(id, 10), URL: url, BodySHA256: canon.Sum([]byte(*body))}, nil
}

type openThread struct {
	ID         string `json:"id"`
	IsResolved bool   `json:"isResolved"`
	Comments   struct {
		Nodes []struct {
			FullDatabaseID number `json:"fullDatabaseId"`
		} `json:"nodes"`
	} `json:"comments"`
}

// ResolveThread resolves the thread that a review comment opened. It is false
// where the token may not, or the comment is gone; a thread that is resolved
// stays so.
func (c *Client) ResolveThread(ctx context.Context, number int, comment string) (bool, error) {
	op := fmt.Sprintf("resolving a thread of pull request %d", number)
	found, err := c.findThread(ctx, number, comment)
	if err != nil || found == nil || found.IsResolved {
		return found != nil && found.IsResolved, failed(op, err)
	}
	_, err = ask[struct{}](ctx, c, mutationResolve, map[string]any{"thread": found.ID})
	if isKind(err, KindPermission, KindNotFound) {
		return false, nil
	}
	return err == nil, failed(op, err)
}

// findThread returns nil if there is none that begins with the comment.
func (c *Client) findThread(ctx context.Context, pull int, comment string) (*openThread, error) {
	type answer struct {
		Repository *struct {
			PullRequest *struct {
				Threads *page[openThread] `json:"reviewThreads"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}
	var threads list[openThread]
	for !threads.done {
		got, err := ask[answer](ctx, c, queryThreads, map[string]any{"owner": c.owner, "name": c.name, "number": pull, "after": threads.cursor})
		if err != nil || got.Repository == nil || got.Repository.PullRequest == nil {
			return nil, err
		}
		if err := threads.add(got.Repository.PullRequest.Threads); err != nil {
			return nil, err
		}
		for i, t := range threads.nodes {
			if len(t.Comments.Nodes) > 0 && string(t.Comments.Nodes[0].FullDatabaseID) == comment {
				return &threads.nodes[i], nil
			}
		}
	}
	return nil, nil
}
