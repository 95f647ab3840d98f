package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/conversation"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// OnPull makes an input one for a pull request as it is now: its head is
// fetched, and is the base of the change.
func (r *Runner) OnPull(ctx context.Context, in input.Change, number int) (input.Change, error) {
	pull, err := r.pull(ctx, number)
	if err != nil {
		return in, err
	}
	in.For = &pull
	return in, nil
}

// PullInput proposes a pull request's own diff, from the merge base to the head.
// Its author proposes it, and nothing will be applied.
func (r *Runner) PullInput(ctx context.Context, number int, summary string) (input.Change, error) {
	pull, err := r.pull(ctx, number)
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

// pull reads an open pull request, and fetches the very head that was read: a
// push in between is an error, and the next run sees it whole (T05).
func (r *Runner) pull(ctx context.Context, number int) (forge.PullRequest, error) {
	if r.Forge == nil || r.Code == nil {
		return forge.PullRequest{}, &conversation.NoForgeError{ID: "this change", PullRequest: number}
	}
	pull, err := r.Forge.PullRequest(ctx, number)
	if err != nil {
		return pull, &conversation.ReadingError{PullRequest: number, Err: err}
	}
	if pull.State != forge.PullRequestOpen {
		return pull, &PullClosedError{number, pull.State}
	}
	head, err := r.Code.Head(ctx, number)
	if err == nil && head != pull.Head.Commit {
		err = &conversation.ReadingError{PullRequest: number, Err: errors.New("its head moved while it was read")}
	}
	return pull, err
}

// A PullClosedError says that a pull request takes no change any more.
type PullClosedError struct {
	PullRequest int
	State       string
}

func (e *PullClosedError) Error() string {
	return fmt.Sprintf("pull request %d is %s", e.PullRequest, e.State)
}

// PatchBetween returns the patch_id of what a commit of a remote ref does to
// another commit.
func (r *Runner) PatchBetween(ctx context.Context, ref, base, commit string) (string, error) {
	if err := r.Code.Fetch(ctx, ref, commit); err != nil {
		return "", err
	}
	set, err := r.Code.Diff(ctx, base, commit)
	return set.ID(), err
}

// Merged ends a transaction of a pull request's own diff after the pull request
// was closed: as completed if it was approved and what was merged is the patch,
// as it can be proved by hashing that again, else as interrupted.
func (r *Runner) Merged(ctx context.Context, id string) (Gated, error) {
	from := r.reader()
	g, after, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[Gated], error) {
		g, err := r.judge(ctx, snap, id, from)
		if err != nil || g.Transaction().Closed {
			return nothing(g, err)
		}
		s := r.stage(g.log)
		if err := r.recordDecisions(ctx, s, &g); err != nil {
			return nothing(g, err)
		}
		if g.Verdict.State != approval.Pending { // nobody is asked any more
			r.recordVerdict(s, g)
		}
		g.Recorded = true
		if s.Log.Transaction().Closed { // denied
			return recording(g, s, ledger.Title{Stage: "gate", Outcome: string(g.Verdict.State), Subject: gateSubject(g.Verdict)})
		}
		why := r.unmerged(ctx, g)
		if why == "" {
			if g.onRecord(ctx, s).State == approval.Approved {
				return recording(g, s, completeMerged(s))
			}
			why = "the pull request was merged without every approval"
		}
		s.Status(ledger.Interrupted, why)
		s.Close()
		return recording(g, s, ledger.Title{Stage: "close", Outcome: string(ledger.Interrupted), Subject: "interrupted: " + why})
	})
	g.Ledger = after
	return g, err
}

// unmerged says why what became of a pull request is not what was approved.
func (r *Runner) unmerged(ctx context.Context, g Gated) string {
	pull := g.talk.Pull()
	tx := g.Transaction()
	switch {
	case pull.State != forge.PullRequestMerged:
		return "the pull request was closed"
	case g.Err() != nil:
		return "the pull request was merged without every approval"
	}
	set, err := r.mergedDiff(ctx, pull)
	if err != nil {
		return r.oneLine("what was merged cannot be read: "+err.Error(), 300)
	}
	if set.ID() != tx.PatchID() {
		return "what was merged is another patch"
	}
	return ""
}

// mergedDiff is what the merge of a pull request did to its base.
func (r *Runner) mergedDiff(ctx context.Context, pull forge.PullRequest) (patch.Patchset, error) {
	if err := r.Code.Fetch(ctx, "refs/heads/"+pull.Base.Branch, pull.MergeCommit); err != nil {
		return patch.Patchset{}, err
	}
	return r.Code.Diff(ctx, "", pull.MergeCommit)
}

// completeMerged ends a transaction whose patch was merged.
func completeMerged(s *ledger.Stage) ledger.Title {
	id := s.Log.Transaction().TransactionID
	s.Event(&ledger.ValidateStart{TransactionID: id, ValidateID: "validate_1"})
	s.Event(&ledger.ValidateComplete{TransactionID: id, ValidateID: "validate_1", Success: true})
	s.Status(ledger.Completed, "what was merged is the approved patch")
	s.Close()
	return ledger.Title{Stage: "validate", Outcome: string(ledger.Completed), Subject: "completed, what was merged is the approved patch"}
}

// Replace ends the open transactions of a pull request's own diff that its diff
// is no more; keep is the one that it is now.
func (r *Runner) Replace(ctx context.Context, pull forge.PullRequest, keep string) error {
	open, _, err := r.OpenOn(ctx, pull.Repository, pull.Number)
	if err != nil {
		return err
	}
	for _, tx := range open {
		if !tx.GateOnly() || tx.TransactionID == keep {
			continue
		}
		if err := r.replaced(ctx, tx.TransactionID, keep); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) replaced(ctx context.Context, id, by string) error {
	_, _, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[none], error) {
		log, err := ledger.Read(snap.Tree, id)
		if err != nil || log.Transaction().Closed {
			return nothing(none{}, err)
		}
		s, title := r.succeeded(log, by, "the pull request's diff is another now")
		return recording(none{}, s, title)
	})
	return err
}

// TransactionsOn returns all transactions of a pull request, oldest first.
func (r *Runner) TransactionsOn(ctx context.Context, in ledger.Repository, number int) ([]ledger.Transaction, error) {
	all, _, err := r.onPull(ctx, in, number)
	return all, err
}

// OpenOn returns the open transactions of a pull request, oldest first, and the
// ledger that has them.
func (r *Runner) OpenOn(ctx context.Context, in ledger.Repository, number int) ([]ledger.Transaction, ledger.Snapshot, error) {
	all, snap, err := r.onPull(ctx, in, number)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return tx.Closed }), snap, err
}

// ClosedOn returns the transactions of a pull request that have ended, oldest
// first.
func ClosedOn(snap ledger.Snapshot, in ledger.Repository, number int) ([]ledger.Transaction, error) {
	all, err := ledger.StatesOnPull(snap.Tree, in, number)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return !tx.Closed }), err
}

// Open returns the open transactions, oldest first, and those of which nobody can
// tell whether they are.
func (r *Runner) Open(ctx context.Context) (open []ledger.Transaction, damaged []*ledger.CorruptError, err error) {
	snap, err := r.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return nil, nil, err
	}
	all, damaged, err := ledger.Each(snap.Tree)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return tx.Closed }), damaged, err
}
