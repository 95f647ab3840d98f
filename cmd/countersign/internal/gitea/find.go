package gitea

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Open lists the open pull requests.
func (c *Client) Open(ctx context.Context) ([]forge.Open, error) {
	open, err := c.pulls(ctx, "open")
	return append([]forge.Open{}, open...), failed("listing the open pull requests", err)
}

// pulls lists the pull requests in a state, "open" or "closed". The API cannot look for
// a head.
func (c *Client) pulls(ctx context.Context, state string) ([]forge.Open, error) {
	all, err := list[pull](ctx, c, false, url.Values{"state": {state}, "sort": {"oldest"}}, c.below("pulls")...)
	if err != nil {
		return nil, err
	}
	var out []forge.Open
	for _, got := range all {
		if got.Number <= 0 || got.Base == nil || got.Head == nil || got.Base.Label == "" {
			return nil, rest.Unusable("a pull request has no number, head or base")
		}
		if state == "open" && rest.CheckCommit(got.Head.SHA) != nil {
			return nil, rest.Unusable("a pull request has no head")
		}
		pr := forge.Open{Number: got.Number, Base: got.Base.Label, Head: forge.Head{Branch: got.Head.Label, Commit: got.Head.SHA}}
		if at := got.Head.Repo; at != nil && at.ID > 0 && at.Owner != nil && got.Head.Label != "" {
			pr.Head.Owner, pr.Head.Repository = at.Owner.Login, strconv.FormatInt(at.ID, 10)
		}
		out = append(out, pr)
	}
	return out, nil
}

// PullRequestsAt lists the open pull requests whose head is a commit.
func (c *Client) PullRequestsAt(ctx context.Context, commit string) ([]forge.Open, error) {
	open, err := c.openAt(ctx, "", commit)
	return open, failed("looking for the pull requests with the same head", err)
}

// PullRequestsOf is forge.Finder's.
func (c *Client) PullRequestsOf(ctx context.Context, head forge.Head) ([]int, error) {
	if head.Owner == "" || head.Branch == "" {
		return nil, failed(lookingFor(head), rest.Unusable("the head has no owner or no branch"))
	}
	open, err := c.openAt(ctx, head.Branch, head.Commit)
	return ofHead(open, head), failed(lookingFor(head), err)
}

// PullRequestOf is forge.Finder's.
func (c *Client) PullRequestOf(ctx context.Context, head forge.Head) (int, error) {
	found, err := c.PullRequestsOf(ctx, head)
	switch {
	case err != nil || len(found) == 0:
		return 0, err
	case len(found) > 1:
		return 0, failed(lookingFor(head), rest.Unusable("it is the head of pull requests %d and %d", found[0], found[1]))
	}
	return found[0], nil
}

// ClosedOf is forge.Finder's. Of a closed pull request whose branch went on, the list
// has another head: it is not found.
func (c *Client) ClosedOf(ctx context.Context, head forge.Head) (int, error) {
	if head.Owner == "" || head.Branch == "" || rest.CheckCommit(head.Commit) != nil {
		return 0, failed(lookingFor(head), rest.Unusable("the head has no owner, branch or commit"))
	}
	closed, err := c.pulls(ctx, "closed")
	closed = slices.DeleteFunc(closed, func(pr forge.Open) bool { return pr.Head.Commit != head.Commit || pr.Head.Branch != head.Branch })
	return slices.Max(append(ofHead(closed, head), 0)), failed(lookingFor(head), err)
}

// Merged is forge.Finder's.
func (c *Client) Merged(ctx context.Context, since time.Time) ([]forge.Merged, error) {
	const op = "listing the merged pull requests"
	all, err := list[pull](ctx, c, false, url.Values{"state": {"closed"}, "sort": {"oldest"}}, c.below("pulls")...)
	if err != nil {
		return nil, failed(op, err)
	}
	out := []forge.Merged{}
	for _, got := range all {
		if got.Number <= 0 || got.Merged == nil {
			return nil, failed(op, rest.Unusable("a pull request has no number, or it is not told whether it was merged"))
		}
		if !*got.Merged {
			continue
		}
		at, err := time.Parse(time.RFC3339, got.MergedAt)
		if err != nil {
			return nil, failed(op, rest.Unusable("it is not told when a pull request was merged"))
		}
		if !at.Before(since) {
			out = append(out, forge.Merged{Number: got.Number, At: at})
		}
	}
	return out, nil
}

// openAt lists the open pull requests with a head commit, of one branch name or, for "",
// of all.
func (c *Client) openAt(ctx context.Context, branch, commit string) ([]forge.Open, error) {
	if err := rest.CheckCommit(commit); err != nil {
		return nil, err
	}
	open, err := c.pulls(ctx, "open")
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

// ofHead returns the numbers of the pull requests whose head is in the repository of
// another. Repositories are compared by their number, where that is known.
func ofHead(all []forge.Open, head forge.Head) (found []int) {
	for _, pr := range all {
		same := pr.Head.Owner != "" && strings.EqualFold(pr.Head.Owner, head.Owner)
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
