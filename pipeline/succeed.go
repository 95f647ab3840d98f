package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// onPull returns the transactions of a pull request, oldest first, and the ledger
// that has them.
func (r *Runner) onPull(ctx context.Context, in ledger.Repository, number int) ([]ledger.Transaction, ledger.Snapshot, error) {
	snap, err := r.Ledger(ctx, ledger.PullDir(number))
	if err != nil {
		return nil, snap, err
	}
	listed, err := ledger.OnPull(snap.Tree, number)
	if err != nil || len(listed) == 0 {
		return nil, snap, err
	}
	var paths []string
	for _, l := range listed {
		paths = append(paths, transaction(l.TransactionID)...)
	}
	if snap, err = r.Ledger(ctx, paths...); err != nil {
		return nil, snap, err
	}
	all, err := statesOnPull(snap.Tree, in, number)
	return all, snap, err
}

func statesOnPull(tree fs.FS, in ledger.Repository, number int) ([]ledger.Transaction, error) {
	listed, err := ledger.OnPull(tree, number)
	if err != nil {
		return nil, err
	}
	var out []ledger.Transaction
	for _, l := range listed {
		tx, err := state(tree, l.TransactionID)
		if err != nil {
			return nil, err
		}
		if p := tx.Pointers.Proposal; p != nil && p.PullRequest == number && p.Repository != nil && p.Repository.ID == in.ID {
			out = append(out, tx)
		}
	}
	return out, nil
}

// succeeded ends a transaction whose place another one has taken.
func (r *Runner) succeeded(log *ledger.Log, by, why string) (*ledger.Stage, ledger.Title) {
	s := r.stage(log)
	s.Status(ledger.Superseded, fmt.Sprintf("superseded by %s: %s", by, why))
	s.Close()
	return s, ledger.Title{Stage: "apply", Outcome: string(ledger.Superseded), Subject: "superseded by " + by}
}

// since is the first second, as the forge tells time, that is surely of a
// transaction. In the very second in which it began something else may have been
// approved: the same bytes in the transaction before, and approvals do not carry
// over; or, by a green review, which names no bytes, the diff to another base.
func since(tree fs.FS, log *ledger.Log) (time.Time, error) {
	at, err := log.Time(0)
	if err != nil {
		return at, err
	}
	at = at.Truncate(time.Second)
	tx := log.Transaction()
	if tx.GateOnly() {
		return at.Add(time.Second), nil
	}
	for _, id := range tx.Pointers.Proposal.Supersedes {
		old, err := state(tree, id)
		if err != nil {
			return at, err
		}
		if old.PatchID() == tx.PatchID() {
			return at.Add(time.Second), nil
		}
	}
	return at, nil
}

// state reads the state of a transaction whose id is the ledger's word.
func state(tree fs.FS, id string) (ledger.Transaction, error) {
	if err := ledger.CheckID(id); err != nil {
		return ledger.Transaction{}, err
	}
	return ledger.State(tree, id)
}
