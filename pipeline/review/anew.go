package review

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// anewRefused says why a transaction is not proposed again.
func anewRefused(id, why, try string) error {
	return fault.Refuse(id+" is not proposed again: "+why, try)
}

// Anew proposes what a transaction proposes on HEAD as it is, where that changed the files meanwhile and
// the patch still fits: with the same words, and in the place of the transaction, which it ends if it is open.
// All who proposed it and who runs this are its proposers, and no approval of the old one counts. was are
// the canonical bytes of the old patch.
func Anew(ctx context.Context, r *pipeline.Runner, id string, dryRun bool) (out Reviewed, was []byte, err error) {
	snap, err := r.Ledger(ctx, pipeline.Paths(id)...)
	if err != nil {
		return out, nil, err
	}
	g, err := r.History(ctx, snap, id)
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
		return out, nil, anewRefused(id, "it is for a pull request; review --pr proposes a patch on its head", "countersign show "+id)
	case p.Checks != "":
		return out, nil, anewRefused(id, "it comes from a Proposal, which asks for more than the patch; whoever made it makes it anew", "countersign show "+id)
	case g.Verdict.State == approval.Denied:
		return out, nil, g.Err()
	case g.Applying() || tx.Status == ledger.Applied || tx.Status == ledger.Completed:
		return out, nil, pipeline.ClosedError(id, tx.Status)
	case !tx.Closed && len(moved) == 0:
		return out, nil, anewRefused(id, "it fits HEAD as it is", "countersign run "+id)
	}
	if was, err = r.Source().Bytes(ctx, snap.Tree, tx); err != nil {
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
	if _, in.RequestedBy, err = lookup.Everybody(snap.Tree, g.Log()); err != nil {
		return out, nil, err
	}
	again := r.With(r.Known())
	if tx.SandboxPolicy.Type == string(policy.ReadOnly) {
		again.Sandbox = policy.ReadOnly
	}
	out, err = Run(ctx, again, in, dryRun)
	return out, was, err
}

// proposers are the proposer and, of what takes the place of another transaction, all who proposed that one, in it
// or elsewhere in the ledger, and whoever runs this: none of them may approve the new one either (T10).
func (r reviewer) proposers(tree fs.FS, p gathered) ([]ledger.Actor, error) {
	out := []ledger.Actor{p.proposer}
	if p.replaces == "" {
		return out, nil
	}
	log, err := ledger.Read(tree, p.replaces)
	if err != nil {
		return nil, err
	}
	all, _, err := lookup.Everybody(tree, log)
	for _, who := range append(all, r.Actor) {
		if !slices.ContainsFunc(out, func(a ledger.Actor) bool { return a.Kind == who.Kind && a.ID == who.ID }) {
			out = append(out, who)
		}
	}
	return out, err
}
