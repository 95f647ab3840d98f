package github

import (
	"context"
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/approval"
)

type statementsAnswer struct {
	Repository *struct {
		PullRequest *struct {
			Reviews  *page[said]   `json:"reviews"`
			Threads  *page[thread] `json:"reviewThreads"`
			Comments *page[said]   `json:"comments"`
		} `json:"pullRequest"`
	} `json:"repository"`
}

type thread struct {
	ID       string      `json:"id"`
	Comments *page[said] `json:"comments"`
}

// Statements is forge.Reader's. What is hidden or outdated is among them;
// what its author has not submitted is not. Of reviews and review comments
// GitHub does not tell whether an app posted them for their author, so App is
// of conversation comments only. Earlier texts are read for accounts of people;
// where the history's versions were deleted, or are from before GitHub kept
// them, they are missing, but Edited is true.
//
// If something changed while it was read, all is read once more; if it changes
// again, that is an error of KindChanged.
func (c *Client) Statements(ctx context.Context, number int) ([]approval.Statement, error) {
	c.known.clear()
	op := fmt.Sprintf("reading the statements of pull request %d", number)
	out, err := c.statements(ctx, op, number)
	if isKind(err, KindChanged) {
		out, err = c.statements(ctx, op, number)
	}
	if err != nil {
		return nil, failed(op, err)
	}
	return out, nil
}

// statements asks the REST API first: a comment that is only in the later
// answer is new, one that is only in the earlier is gone.
func (c *Client) statements(ctx context.Context, op string, number int) ([]approval.Statement, error) {
	posted, err := c.postedComments(ctx, number)
	if err != nil {
		return nil, err
	}
	all, err := c.readSaid(ctx, op, number)
	if err != nil {
		return nil, err
	}
	histories, err := c.histories(ctx, op, all)
	if err != nil {
		return nil, err
	}
	out := []approval.Statement{}
	ids := map[string]bool{}
	for _, s := range all {
		if s.ID == "" || s.FullDatabaseID == "" || s.CreatedAt == "" {
			return nil, unusable("a statement has no number or no date")
		}
		if s.untold() {
			return nil, unusable("it is not told whether a comment is edited, came by e-mail or is hidden")
		}
		if ids[s.ID] {
			return nil, changed("the statements")
		}
		ids[s.ID] = true
		if !s.pending() {
			out = append(out, s.statement(histories[s.ID]))
		}
	}
	return out, addApps(out, posted)
}

// readSaid reads the three connections together, each to its end.
func (c *Client) readSaid(ctx context.Context, op string, number int) ([]said, error) {
	var reviews, comments list[said]
	var threads list[thread]
	for !reviews.done || !threads.done || !comments.done {
		got, err := ask[statementsAnswer](ctx, c, op, queryStatements, map[string]any{
			"owner": c.owner, "name": c.name, "number": number,
			"reviews": !reviews.done, "threads": !threads.done, "comments": !comments.done,
			"afterReview": reviews.cursor, "afterThread": threads.cursor, "afterComment": comments.cursor,
		})
		if err != nil {
			return nil, err
		}
		if got.Repository == nil || got.Repository.PullRequest == nil {
			return nil, &Error{Kind: KindNotFound, Message: "there is no such pull request"}
		}
		pr := got.Repository.PullRequest
		if err := firstError(reviews.add(pr.Reviews), threads.add(pr.Threads), comments.add(pr.Comments)); err != nil {
			return nil, err
		}
	}
	if !reviews.whole() || !threads.whole() || !comments.whole() {
		return nil, changed("the statements")
	}
	all := append(ofKind(reviews.nodes, approval.KindReview), ofKind(comments.nodes, approval.KindIssueComment)...)
	for _, t := range threads.nodes {
		said, err := c.readThread(ctx, op, t)
		if err != nil {
			return nil, err
		}
		all = append(all, said...)
	}
	return all, nil
}

// readThread reads the rest of a thread.
func (c *Client) readThread(ctx context.Context, op string, t thread) ([]said, error) {
	var comments list[said]
	if err := comments.add(t.Comments); err != nil {
		return nil, err
	}
	for !comments.done {
		got, err := ask[struct{ Node *thread }](ctx, c, op, queryThread, map[string]any{"id": t.ID, "after": comments.cursor})
		if isKind(err, KindNotFound) || err == nil && got.Node == nil {
			return nil, changed("the threads")
		}
		if err != nil {
			return nil, err
		}
		if err := comments.add(got.Node.Comments); err != nil {
			return nil, err
		}
	}
	if !comments.whole() {
		return nil, changed("the threads")
	}
	all := ofKind(comments.nodes, approval.KindReviewComment)
	for i := range all {
		if i > 0 {
			all[i].replyTo = string(all[0].FullDatabaseID)
		}
	}
	return all, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
