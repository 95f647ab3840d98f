package pipeline

import (
	"context"
	"errors"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// abandon ends an apply that was cut off and whose patch was denied since: what
// is on disk is recorded as it is, nothing more is written, and the transaction
// is closed as denied.
func (r *Runner) abandon(ctx context.Context, to effect, g Gated) error {
	open, applying := g.log.OpenApply()
	if !applying {
		return nil
	}
	if err := to.canResume(open); err != nil {
		return err
	}
	if err := r.giveUp(ctx, to, g, "the patch was denied"); err != nil {
		return err
	}
	_, err := r.Gate(ctx, g.Transaction().TransactionID)
	return err
}

// giveUp records an open apply as what is found on disk.
func (r *Runner) giveUp(ctx context.Context, to effect, g Gated, why string) error {
	open, _ := g.log.OpenApply()
	tx := g.Transaction()
	set, err := r.onCommit(ctx, g.Ledger.Tree, tx, open.BaseCommit)
	if err != nil {
		return err
	}
	done, err := to.found(ctx, set.Files(), open, why)
	if err != nil {
		return err
	}
	res := result.New(".", tx.Pointers.Proposal.Source(), false, done.ops)
	_, err = r.finish(ctx, tx.TransactionID, open, res, done)
	if err != nil && !errors.Is(err, ledger.ErrMoved) { // ended by another run, which is as good
		return err
	}
	return to.end(open)
}

// Interrupt closes a transaction that nobody will take further. Unlike a
// denial it says nothing about the patch. An apply that was begun, here or
// elsewhere, and is not going on is recorded as what is found here.
func (r *Runner) Interrupt(ctx context.Context, id, reason string) (Gated, error) {
	if err := r.endApply(ctx, id); err != nil {
		return Gated{}, err
	}
	g, after, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[Gated], error) {
		g, err := r.judge(ctx, snap, id, nil)
		if err != nil {
			return nothing(g, err)
		}
		tx := g.Transaction()
		if _, applying := g.log.OpenApply(); tx.Closed || applying {
			return nothing(g, &ClosedError{id, tx.Status})
		}
		s := r.stage(g.log)
		s.Status(ledger.Interrupted, r.oneLine(reason, 300))
		s.Close()
		g.Recorded = true
		return recording(g, s, ledger.Title{Stage: "close", Outcome: string(ledger.Interrupted), Subject: "interrupted: " + reason})
	})
	g.Ledger = after
	return g, err
}

func (r *Runner) endApply(ctx context.Context, id string) error {
	snap, err := r.Ledger(ctx, transaction(id)...)
	if err != nil {
		return err
	}
	g, err := r.judge(ctx, snap, id, nil)
	if err != nil {
		return err
	}
	if _, open := g.log.OpenApply(); !open {
		return nil
	}
	to, err := r.effect(ctx, g, ApplyOptions{}, r.reader())
	if err != nil {
		return err
	}
	unlock, err := to.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return r.giveUp(ctx, to, g, "the transaction was closed")
}
