package pull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// ChangeFor makes an input one for a pull request as it is now: its head is
// fetched, and is the base of the change.
func ChangeFor(ctx context.Context, r *pipeline.Runner, in input.Change, number int) (input.Change, error) {
	pull, err := readOpen(ctx, r, number)
	if err != nil {
		return in, err
	}
	in.For = &pull
	return in, nil
}

// OwnDiff proposes a pull request's own diff, from the merge base to the head.
// Its author proposes it, and nothing will be applied.
func OwnDiff(ctx context.Context, r *pipeline.Runner, number int, summary string) (input.Change, error) {
	pull, err := readOpen(ctx, r, number)
	if err != nil {
		return input.Change{}, err
	}
	base, err := r.Code.MergeBase(ctx, pull.Base.Branch, pull.Head.Commit)
	if err != nil {
		return input.Change{}, err
	}
	return input.Change{
		Kind: input.KindPullRequest, Summary: cmp.Or(summary, pull.Title), For: &pull, Base: base, Proposer: &pull.Author,
		Resolve: func(fs.FS) (patch.Patchset, error) { return r.Code.Diff(ctx, base, pull.Head.Commit) },
	}, nil
}

// readOpen reads an open pull request, and fetches the very head that was read: a
// push in between is an error, and the next run sees it whole (T05).
func readOpen(ctx context.Context, r *pipeline.Runner, number int) (forge.PullRequest, error) {
	if r.Forge == nil || r.Code == nil {
		return forge.PullRequest{}, forge.NoForge("this change", number)
	}
	pull, err := r.Reader().PullRequest(ctx, number)
	if err != nil {
		return pull, err
	}
	if pull.State != forge.PullRequestOpen {
		text := fmt.Sprintf("pull request %d is %s", number, pull.State)
		return pull, &fault.Error{Kind: fault.Refused, Message: text, Try: "reopen the pull request, or propose the change without --pr", Cause: errClosed}
	}
	head, err := r.Code.Head(ctx, number)
	if err == nil && head != pull.Head.Commit {
		err = &forge.ReadingError{PullRequest: number, Err: errors.New("its head moved while it was read")}
	}
	return pull, err
}

// errClosed is that a pull request takes no change any more.
var errClosed = errors.New("the pull request is closed")

// mostRebased is how many commits of the base branch are compared, as a row, with what was
// approved: a forge can rebase a pull request.
const mostRebased = 50

// End ends a transaction of a pull request's own diff after the pull request was
// closed: as completed if it was approved and what was merged is exactly that, on whatever
// the base branch had by then, else as interrupted.
func End(ctx context.Context, r *pipeline.Runner, id string) (pipeline.Judgement, error) {
	return r.EndOwnDiff(ctx, id, func(ctx context.Context, g pipeline.Judgement) (string, error) {
		pull := g.Pull()
		failed := func(err error) error {
			return fmt.Errorf("reading what pull request %d was merged as, %.12s: %w", pull.Number, pull.MergeCommit, err)
		}
		if err := r.Code.Fetch(ctx, "refs/heads/"+pull.Base.Branch, pull.MergeCommit, g.Transaction().Pointers.Proposal.BaseCommit); err != nil {
			return "", failed(err)
		}
		want, err := approved(ctx, r, g)
		if errors.As(err, new(*pipeline.RedactedError)) {
			return "it was approved, and whether what was merged is exactly that cannot be told: " + err.Error(), nil
		}
		if err != nil {
			return "", failed(err)
		}
		switch _, ok, err := explain.Placed(ctx, r.Code, want, pull.MergeCommit, mostRebased); {
		case err != nil:
			return "", failed(err)
		case !ok:
			return "it was approved, and what was merged is not exactly that", nil
		}
		return "", nil
	})
}

// approved is the patch that a pull request's own diff was, whose secrets the pull
// request has.
func approved(ctx context.Context, r *pipeline.Runner, g pipeline.Judgement) (patch.Patchset, error) {
	tx := g.Transaction()
	set, err := g.Patchset(ctx)
	var redacted *pipeline.RedactedError
	if errors.As(err, &redacted) {
		var head string
		if head, err = r.Code.Head(ctx, tx.PullRequest()); err == nil {
			set, err = r.Code.Diff(ctx, tx.Pointers.Proposal.BaseCommit, head)
		}
		if errors.As(err, new(*patch.Error)) || err == nil && set.ID() != tx.PatchID() {
			err = redacted
		}
	}
	return set, err
}

// Replace ends the open transactions of a pull request's own diff that its diff
// is no more; keep is the one that it is now.
func Replace(ctx context.Context, r *pipeline.Runner, pull forge.PullRequest, keep string) error {
	open, _, err := openOn(ctx, r, pull.Repository, pull.Number)
	if err != nil {
		return err
	}
	for _, tx := range open {
		if !tx.GateOnly() || tx.TransactionID == keep {
			continue
		}
		if err := r.Supersede(ctx, tx.TransactionID, keep, "the pull request's diff is another now"); err != nil {
			return err
		}
	}
	return nil
}

// openOn returns the open transactions of a pull request, oldest first, and the
// ledger that has them.
func openOn(ctx context.Context, r *pipeline.Runner, in ledger.Repository, number int) ([]ledger.Transaction, writing.Snapshot, error) {
	all, snap, err := r.TransactionsOn(ctx, in, number)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return tx.Closed }), snap, err
}

// closedOn returns the transactions of the pull request that have ended, oldest
// first.
func (s *settlement) closedOn() ([]ledger.Transaction, error) {
	all, err := lookup.StatesOnPull(s.ledger.Tree, s.pull.Repository, s.number)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return !tx.Closed }), err
}
