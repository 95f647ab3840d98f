package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/rule"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// TargetWorktree is the target of an apply to the checked-out files.
const TargetWorktree = "worktree"

// An ApplyOutcome is what Apply did. Already says that an earlier apply had
// done it, and Result is that one's.
type ApplyOutcome struct {
	Result       result.Result
	LedgerCommit string
	Already      bool
}

// Apply carries out an approved change in the working tree and nothing else:
// the denials, approvals, patch bytes and base hashes are checked again, the
// intent is recorded, the files are written and read back, and the outcome is
// recorded. After a crash it finishes what was begun. dryRun writes nothing,
// neither files nor ledger, and predicts the same result.
//
// A refusal returns an outcome REFUSED together with the error that says why.
func (r *Runner) Apply(ctx context.Context, g Gated, dryRun bool) (ApplyOutcome, error) {
	if r.Worktree == nil {
		return ApplyOutcome{}, &NoWorktreeError{}
	}
	if !dryRun {
		unlock, err := r.Worktree.Lock(ctx)
		if err != nil {
			return ApplyOutcome{}, err
		}
		defer unlock()
	}
	id := g.Transaction().TransactionID
	snap, err := r.Store.Snapshot(ctx)
	if err != nil {
		return ApplyOutcome{}, fmt.Errorf("reading the ledger: %w", err)
	}
	if done, err := r.already(snap, id); done != nil || err != nil {
		return deref(done), err
	}
	if g, err = r.judge(snap, id); err != nil {
		return ApplyOutcome{Result: refusal(err, dryRun)}, err
	}
	return r.apply(ctx, g, snap, dryRun)
}

func deref(o *ApplyOutcome) ApplyOutcome {
	if o == nil {
		return ApplyOutcome{}
	}
	return *o
}

// already returns the outcome of a transaction that was applied before.
func (r *Runner) already(snap Snapshot, id string) (*ApplyOutcome, error) {
	log, err := ledger.Read(snap.Tree, id)
	if err != nil {
		return nil, err
	}
	if s := log.Transaction().Status; s != ledger.Applied && s != ledger.Completed {
		return nil, nil
	}
	raw, err := fs.ReadFile(snap.Tree, path.Join(ledger.Dir(id), ledger.ResultFile))
	if err != nil {
		return nil, fmt.Errorf("reading the earlier result: %w", err)
	}
	res, err := result.Parse(raw)
	return &ApplyOutcome{Result: res, LedgerCommit: snap.Tip, Already: true}, err
}

// ended refuses a transaction that takes no more events; of a denied one the
// verdict says so.
func ended(tx ledger.Transaction) error {
	switch {
	case tx.Status == ledger.Superseded:
		return &SupersededError{ID: tx.TransactionID}
	case tx.Closed && tx.Status != ledger.Denied:
		return &ClosedError{tx.TransactionID, tx.Status}
	}
	return nil
}

// apply goes on with a transaction that is still to be applied.
func (r *Runner) apply(ctx context.Context, g Gated, snap Snapshot, dryRun bool) (ApplyOutcome, error) {
	refuse := func(err error) (ApplyOutcome, error) {
		return ApplyOutcome{Result: refusal(err, dryRun), LedgerCommit: snap.Tip}, err
	}
	if err := ended(g.Transaction()); err != nil {
		return refuse(err)
	}
	if err := g.Err(); err != nil {
		if g.Verdict.State == approval.Denied && !dryRun {
			err = errors.Join(err, r.abandon(ctx, g))
		}
		return refuse(err)
	}
	p, err := r.approvedPatch(ctx, g, snap)
	if superseded, ok := err.(*SupersededError); ok && !dryRun {
		return refuse(r.supersede(ctx, superseded))
	}
	if err != nil {
		return refuse(err)
	}
	if err := r.ready(ctx, g, p.set); err != nil {
		return refuse(err)
	}
	if dryRun {
		return ApplyOutcome{Result: result.New(".", g.Transaction().Pointers.Proposal.Source(), true, workspace.Predict(p.set.Files())), LedgerCommit: snap.Tip}, nil
	}
	return r.carryOut(ctx, g, p)
}

// refusal is the ApplyResult of an apply that was not begun.
func refusal(err error, dryRun bool) result.Result {
	var vs []rule.Violation
	for _, file := range refusedFiles(err) {
		vs = append(vs, rule.Violation{RuleID: "BASE", Path: file, Message: "is not as the approved change found it"})
	}
	if vs == nil {
		vs = []rule.Violation{{RuleID: "GATE", Message: err.Error()}}
	}
	return result.Refuse(".", dryRun, err.Error(), vs)
}

func refusedFiles(err error) []string {
	switch e := err.(type) {
	case *DirtyError:
		return e.Files
	case *SupersededError:
		return e.Files
	}
	return nil
}

// carryOut records the intent, writes, and records the outcome.
func (r *Runner) carryOut(ctx context.Context, g Gated, p prepared) (ApplyOutcome, error) {
	id := g.Transaction().TransactionID
	start, err := r.begin(ctx, id, p)
	if err != nil {
		return ApplyOutcome{Result: refusal(err, false)}, err
	}
	res := result.New(".", g.Transaction().Pointers.Proposal.Source(), false, r.Worktree.Write(p.set.Files()))
	commit, err := r.finish(ctx, id, start, res)
	if err == nil {
		err = r.Worktree.Claim().End()
	}
	return ApplyOutcome{Result: res, LedgerCommit: commit}, err
}
