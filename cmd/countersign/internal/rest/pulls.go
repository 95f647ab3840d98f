package rest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Pulls finds pull requests among those that a forge lists.
type Pulls struct {
	Forge string // as errors name it
	// List lists the pull requests that are open, or those that are not: of them at least those whose head is a branch of this
	// name, "" for any.
	List func(ctx context.Context, branch string, open bool) ([]forge.Open, error)
	// ListMerged lists those that were merged; At is the zero time where that is not told.
	ListMerged func(ctx context.Context) ([]forge.Merged, error)
}

// Merged is forge.Finder's.
func (p Pulls) Merged(ctx context.Context, since time.Time) ([]forge.Merged, error) {
	all, err := p.ListMerged(ctx)
	out := []forge.Merged{}
	for _, pr := range all {
		if pr.Number <= 0 || pr.At.IsZero() {
			err = cmp.Or(err, Unusable("a merged pull request has no number, or no time at which it was merged"))
		}
		if !pr.At.Before(since) {
			out = append(out, pr)
		}
	}
	if err != nil {
		return nil, Failed(p.Forge, "listing the merged pull requests", err)
	}
	return out, nil
}

// Open lists the open pull requests.
func (p Pulls) Open(ctx context.Context) ([]forge.Open, error) {
	open, err := p.List(ctx, "", true)
	return append([]forge.Open{}, open...), Failed(p.Forge, "listing the open pull requests", err)
}

// PullRequestsAt lists the open pull requests whose head is a commit, those from forks too.
func (p Pulls) PullRequestsAt(ctx context.Context, commit string) ([]forge.Open, error) {
	open, err := p.at(ctx, "", commit, true)
	return open, Failed(p.Forge, "looking for the pull requests with the same head", err)
}

// PullRequestsOf returns the numbers of the open pull requests with this head.
func (p Pulls) PullRequestsOf(ctx context.Context, head forge.Head) ([]int, error) {
	return p.of(ctx, head, true)
}

// PullRequestOf returns the number of the one open pull request with this head,
// and 0 if there is none, as after a push. Several, which differ in their base,
// are an error.
func (p Pulls) PullRequestOf(ctx context.Context, head forge.Head) (int, error) {
	found, err := p.of(ctx, head, true)
	switch {
	case err != nil || len(found) == 0:
		return 0, err
	case len(found) > 1:
		return 0, p.failed(head, Unusable("it is the head of pull requests %d and %d", found[0], found[1]))
	}
	return found[0], nil
}

// ClosedOf is forge.Finder's.
func (p Pulls) ClosedOf(ctx context.Context, head forge.Head) (int, error) {
	found, err := p.of(ctx, head, false)
	return slices.Max(append(found, 0)), err
}

func (p Pulls) failed(head forge.Head, err error) error {
	return Failed(p.Forge, "looking for the pull request of "+ledger.OneLine(head.Owner+":"+head.Branch, 120), err)
}

// of returns the numbers of the pull requests with a head. Repositories are compared by their number, where that is known:
// it stays, and an owner's login can go to somebody else. A head whose repository was deleted has no owner, and is nobody's.
func (p Pulls) of(ctx context.Context, head forge.Head, open bool) (found []int, err error) {
	if head.Owner == "" || head.Branch == "" {
		return nil, p.failed(head, Unusable("the head has no owner or no branch"))
	}
	all, err := p.at(ctx, head.Branch, head.Commit, open)
	for _, pr := range all {
		same := pr.Head.Owner != "" && strings.EqualFold(pr.Head.Owner, head.Owner)
		if head.Repository != "" {
			same = pr.Head.Repository == head.Repository
		}
		if same {
			found = append(found, pr.Number)
		}
	}
	return found, p.failed(head, err)
}

// at lists the pull requests with a head commit, of one branch name or, for "", of all.
func (p Pulls) at(ctx context.Context, branch, commit string, open bool) ([]forge.Open, error) {
	if err := CheckCommit(commit); err != nil {
		return nil, err
	}
	all, err := p.List(ctx, branch, open)
	if err != nil {
		return nil, err
	}
	out := []forge.Open{}
	for _, pr := range all {
		if pr.Head.Commit == commit && (branch == "" || pr.Head.Branch == branch) {
			out = append(out, pr)
		}
	}
	return out, nil
}
