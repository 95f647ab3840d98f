package pipeline

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// An AnewError says why a transaction's patch is not proposed again. Stays says that it fits as it is.
type AnewError struct {
	ID, Why string
	Stays   bool
}

func (e *AnewError) Error() string { return e.ID + " is not proposed again: " + e.Why }

func (e *AnewError) Hint() string {
	if e.Stays {
		return "countersign run " + e.ID
	}
	return "countersign show " + e.ID
}

// ReviewAgain proposes what a transaction proposes on HEAD as it is, where that changed the files meanwhile and
// the patch still fits: with the same words, and in the place of the transaction, which it ends if it is open.
// All who proposed it and who runs this are its proposers, and no approval of the old one counts. was are
// the canonical bytes of the old patch.
func (r *Runner) ReviewAgain(ctx context.Context, id string, dryRun bool) (out Reviewed, was []byte, err error) {
	snap, err := r.Ledger(ctx, transaction(id)...)
	if err != nil {
		return out, nil, err
	}
	g, err := r.judge(ctx, snap, id, nil)
	if err != nil {
		return out, nil, err
	}
	tx := g.Transaction()
	p := tx.Pointers.Proposal
	moved, err := g.Moved(ctx)
	switch {
	case err != nil:
		return out, nil, err
	case tx.PullRequest() > 0:
		return out, nil, &AnewError{ID: id, Why: "it is for a pull request; review --pr proposes a patch on its head"}
	case p.Checks != "":
		return out, nil, &AnewError{ID: id, Why: "it comes from a Proposal, which asks for more than the patch; whoever made it makes it anew"}
	case g.Verdict.State == approval.Denied:
		return out, nil, g.Err()
	case g.Applying() || tx.Status == ledger.Applied || tx.Status == ledger.Completed:
		return out, nil, &ClosedError{id, tx.Status}
	case !tx.Closed && len(moved) == 0:
		return out, nil, &AnewError{ID: id, Why: "it fits HEAD as it is", Stays: true}
	}
	if was, err = r.source().Bytes(ctx, snap.Tree, tx); err != nil {
		return out, nil, err
	}
	in, err := input.One(was, false, tx.Notes)
	if err != nil {
		return out, nil, &ledger.CorruptError{ID: id, Err: err}
	}
	in.Author, in.Proposer, in.Replaces = p.Author, &tx.Proposer, id
	if said := strings.TrimSpace(p.Message + "\n\n" + strings.Join(p.Declared, "\n")); said != "" {
		in.Messages = []string{said}
	}
	again := r.With(r.known())
	if tx.SandboxPolicy.Type == string(policy.ReadOnly) {
		again.Sandbox = policy.ReadOnly
	}
	if out, err = again.Review(ctx, in, dryRun); err != nil || dryRun {
		return out, was, err
	}
	dir, err := fs.Sub(snap.Tree, ledger.Dir(id))
	if err != nil {
		return out, was, err
	}
	also := [][]ledger.Actor{{r.Actor}}
	also = slices.AppendSeq(also, maps.Values(ledger.Proposers(dir, g.log)))
	also = slices.AppendSeq(also, maps.Values(g.elsewhere))
	seen := []ledger.Actor{tx.Proposer}
	for _, who := range slices.Concat(also...) { // none of them may approve the new one either
		if slices.ContainsFunc(seen, func(a ledger.Actor) bool { return a.Kind == who.Kind && a.ID == who.ID }) {
			continue
		}
		seen, in.Proposer = append(seen, who), &who
		more, err := again.Review(ctx, in, false)
		if err != nil {
			return out, was, err
		}
		out.Ledger = more.Ledger
	}
	return out, was, nil
}
