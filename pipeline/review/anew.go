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

// remakeRefused says why a transaction is not proposed again, or in part.
func remakeRefused(id, how, why, try string) error {
	return fault.Refuse(id+" is not proposed "+how+": "+why, try)
}

// remade is a transaction whose place another proposal is to take, of the same proposers. What cannot be proposed so is refused.
func remade(ctx context.Context, r *pipeline.Runner, id, how string) (g pipeline.Judgement, err error) {
	snap, err := r.Ledger(ctx, pipeline.Paths(id)...)
	if err == nil {
		g, err = r.History(ctx, snap, id)
	}
	if err != nil {
		return g, err
	}
	switch tx := g.Transaction(); {
	case tx.PullRequest() > 0:
		err = remakeRefused(id, how, "it is for a pull request; review --pr proposes a patch on its head", "countersign show "+id)
	case tx.Pointers.Proposal.Checks != "":
		err = remakeRefused(id, how, "it comes from a Proposal, which asks for more than the patch; whoever made it makes it anew", "countersign show "+id)
	case g.Verdict.State == approval.Denied:
		err = g.Err()
	case g.Applying() || tx.Status == ledger.Applied || tx.Status == ledger.Completed:
		err = pipeline.ClosedError(id, tx.Status)
	}
	return g, err
}

// remake is the proposal of a patch in the place of a transaction, with its words and of its proposers, by which r is to run it.
func remake(r *pipeline.Runner, g pipeline.Judgement, raw []byte, because string) (in input.Change, by *pipeline.Runner, err error) {
	tx := g.Transaction()
	p := tx.Pointers.Proposal
	if in, err = input.One(raw, false, tx.Notes); err != nil {
		return in, nil, &ledger.CorruptError{ID: tx.TransactionID, Err: err}
	}
	in.Author, in.Proposer, in.Replaces, in.Because = p.Author, &tx.Proposer, tx.TransactionID, because
	if said := strings.TrimSpace(p.Message + "\n\n" + strings.Join(p.Declared, "\n")); said != "" {
		in.Messages = []string{said}
	}
	if _, in.RequestedBy, err = lookup.Everybody(g.Ledger.Tree, g.Log()); err != nil {
		return in, nil, err
	}
	by = r.With(r.Known())
	if tx.SandboxPolicy.Type == string(policy.ReadOnly) {
		by.Sandbox = policy.ReadOnly
	}
	return in, by, nil
}

// Anew proposes what a transaction proposes on HEAD as it is, where that changed the files meanwhile and
// the patch still fits: with the same words, and in the place of the transaction, which it ends if it is open.
// All who proposed it and who runs this are its proposers, and no approval of the old one counts. was are
// the canonical bytes of the old patch.
func Anew(ctx context.Context, r *pipeline.Runner, id string, dryRun bool) (out Reviewed, was []byte, err error) {
	g, err := remade(ctx, r, id, "again")
	if err != nil {
		return out, nil, err
	}
	moved, err := g.Moved(ctx)
	if err == nil && !g.Transaction().Closed && len(moved) == 0 {
		err = remakeRefused(id, "again", "it fits HEAD as it is", "countersign run "+id)
	}
	if err != nil {
		return out, nil, err
	}
	if was, err = r.Source().Bytes(ctx, g.Ledger.Tree, g.Transaction()); err != nil {
		return out, nil, err
	}
	in, again, err := remake(r, g, was, "its files changed, and its patch was proposed again on these")
	if err == nil {
		out, err = Run(ctx, again, in, dryRun)
	}
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
