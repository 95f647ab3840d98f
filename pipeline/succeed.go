package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// A proposal for a pull request takes the place of the open ones that its
// proposer made for the same pull request and that touch one of its files. A
// file is a path, byte for byte; a rename touches both of its names. Paths that
// are only in each other's way ("a" and "a/b", or by case) are two files: both
// are asked about, and the second does not fit any more once the first is
// applied. What is applied, or being applied, is left alone.

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

// rivals are what Review reads to know which transactions a proposal supersedes.
func (r *Runner) rivals(ctx context.Context, p gathered) ([]string, error) {
	if p.pull == nil || p.own {
		return nil, nil
	}
	all, _, err := r.onPull(ctx, p.pull.Repository, p.pull.Number)
	paths := []string{ledger.PullDir(p.pull.Number)}
	for _, tx := range all {
		if p.supersedes(tx) {
			paths = append(paths, transaction(tx.TransactionID)...)
		}
	}
	return paths, err
}

// superseded are the logs of the transactions that a proposal takes the place of.
func (p gathered) superseded(tree fs.FS) ([]*ledger.Log, error) {
	if p.pull == nil || p.own {
		return nil, nil
	}
	all, err := statesOnPull(tree, p.pull.Repository, p.pull.Number)
	if err != nil {
		return nil, err
	}
	var out []*ledger.Log
	for _, tx := range all {
		if !p.supersedes(tx) {
			continue
		}
		log, err := ledger.Read(tree, tx.TransactionID)
		if err != nil {
			return nil, err
		}
		if _, applying := log.OpenApply(); !applying {
			out = append(out, log)
		}
	}
	return out, nil
}

// supersedes reports whether a transaction of the same pull request is one whose
// place the proposal takes, unless it is being applied.
func (p gathered) supersedes(tx ledger.Transaction) bool {
	if tx.Closed || tx.Status == ledger.Applied || tx.GateOnly() || tx.Proposer.Kind != p.proposer.Kind || tx.Proposer.ID != p.proposer.ID {
		return false
	}
	return slices.ContainsFunc(p.set.Files(), func(f patch.Change) bool {
		return slices.Contains(tx.Pointers.Proposal.TargetFiles, f.Path)
	})
}

// succeed records a proposal, after the end of what it supersedes.
func (r *Runner) succeed(in input.Change, p gathered, old []*ledger.Log, out Reviewed, first bool) (try[Reviewed], error) {
	stage, err := r.propose(in, p, out.Supersedes)
	if err != nil {
		return nothing(out, err)
	}
	tx := stage.Log.Transaction()
	out.ID, out.Status = tx.TransactionID, tx.Status
	entries, err := r.succession(old, tx.TransactionID)
	if err != nil {
		return nothing(out, err)
	}
	entry, err := stage.Entry(ledger.Title{Stage: "review", Outcome: string(tx.Status), Subject: p.subject(in.Summary)}, first)
	if err != nil {
		return nothing(out, err)
	}
	return try[Reviewed]{value: out, entries: append(entries, *entry)}, nil
}

// succession are the entries that end what a proposal supersedes.
func (r *Runner) succession(old []*ledger.Log, by string) ([]ledger.Entry, error) {
	var out []ledger.Entry
	for _, log := range old {
		s, title := r.succeeded(log, by, "the proposer proposed another change of its files for this pull request")
		e, err := s.Entry(title, false)
		if err != nil {
			return nil, err
		}
		out = append(out, *e)
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

func ids(logs []*ledger.Log) []string {
	var out []string
	for _, log := range logs {
		out = append(out, log.Transaction().TransactionID)
	}
	return out
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
