package review

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Again says what became of a proposal whose patch an open transaction has already.
type Again string

// A further proposal is recorded with the transaction, unless one of the same proposer, input
// and words is, the transaction takes none any more, or it has as many as it takes of those who proposed it before.
const (
	AgainNothing  Again = ""
	AgainRecorded Again = "recorded"
	AgainFull     Again = "full"
)

// proposeAgain records that a patch was proposed once more, where that says something new: by whom, with
// which input and words. It changes nothing about what was approved, but from there on its proposers
// approve their own change.
func (r reviewer) proposeAgain(tree fs.FS, in input.Change, p gathered, by []ledger.Actor, out Reviewed, dryRun bool) (pipeline.Try[Reviewed], error) {
	log, err := lookup.Read(tree, out.ID)
	if err != nil || dryRun || !writing.TakesProposals(log) {
		return pipeline.Nothing(out, err)
	}
	dir, err := fs.Sub(tree, ledger.Dir(out.ID))
	if err != nil {
		return pipeline.Nothing(out, err)
	}
	recorded, err := lookup.Provenances(dir, log)
	if err != nil {
		return pipeline.Nothing(out, err)
	}
	return r.addProposals(log, recorded, in, p, by, out)
}

// addProposals records those by some that say something new beside those recorded.
func (r reviewer) addProposals(log *ledger.Log, recorded []ledger.Provenance, in input.Change, p gathered, by []ledger.Actor, out Reviewed) (pipeline.Try[Reviewed], error) {
	s := r.Stage(log)
	var said string
	for _, who := range by {
		doc, err := r.further(in, p, who, log.Transaction())
		if err != nil {
			return pipeline.Nothing(out, err)
		}
		before := len(log.Events())
		if in.Trace != nil {
			doc.Trace = in.StoreTrace(s)
		}
		if len(log.Events()) == before && slices.ContainsFunc(recorded, func(o ledger.Provenance) bool { return same(doc, o) }) && !doc.TellsOfSomebody(recorded) { // without a trace, or with one that is there
			continue
		}
		switch n := len(log.Artifacts(ledger.KindAgain)); {
		case n >= ledger.MaxAgain && !doc.TellsOfSomebody(recorded):
			out.Again = AgainFull
			continue
		case n >= ledger.MaxNamed && onlyNames(doc, recorded): // left out, whom it names could approve unseen
			return pipeline.Nothing(out, fmt.Errorf("%d further proposals of %s are recorded already, and this one only names somebody else who asked for it: countersign close %[2]s, and propose it anew", n, out.ID))
		}
		s.Artifact(ledger.KindAgain, doc)
		said = cmp.Or(said, "proposed again by "+doc.Proposer.Login+" as "+lookup.Form(doc.Input))
	}
	if said == "" {
		return pipeline.Nothing(out, nil)
	}
	out.Again = AgainRecorded
	return pipeline.Recording(out, s, writing.Title{Stage: "review", Outcome: ledger.OutcomeAgain, Subject: said})
}

// further is what is recorded of a further proposal of a transaction's patch, as it is stored: without secrets, and
// so that the record verifies, which is somebody else's.
func (r reviewer) further(in input.Change, p gathered, by ledger.Actor, of ledger.Transaction) (ledger.Provenance, error) {
	doc := in.Provenance(p.Patch, by, r.Tool)
	doc.Schema, doc.BaseSHA256, doc.AfterSHA256 = ledger.AgainSchema, nil, nil
	doc.Summary = r.OneLine(in.Summary, 500)
	doc.Author = writing.AuthorIf(in.Author, r.Now(), r.Secrets.Text)
	in.Summary = doc.Summary
	doc.Message, doc.Declared = in.Claims(r.Secrets.Text)
	doc.RequestedBy = ledger.SortRequesters(in.RequestedBy)
	_, clean, err := writing.Scrub(r.Secrets, doc)
	if err != nil {
		return doc, err
	}
	var stored ledger.Provenance
	if err = canon.Unmarshal(clean, &stored); err == nil && stored.CheckAgain(of) != nil { // half of what is claimed is nothing that a commit can have
		stored.Author, stored.Message, stored.Declared = nil, "", nil
		err = stored.CheckAgain(of)
	}
	return stored, err
}

// onlyNames reports whether Provenance.TellsOfSomebody is true only by the word of the proposer, which may be of people that there are not.
func onlyNames(p ledger.Provenance, before []ledger.Provenance) bool {
	names := p.TellsOfSomebody(before)
	p.RequestedBy = slices.DeleteFunc(slices.Clone(p.RequestedBy), func(r ledger.Requester) bool { return !r.IsForges() })
	return names && !p.TellsOfSomebody(before)
}

// same reports whether two proposals of one patch came from the same place with the same words.
func same(p, o ledger.Provenance) bool {
	author := p.Author == o.Author || p.Author != nil && o.Author != nil && *p.Author == *o.Author
	return p.By(o.Proposer) && p.Input == o.Input &&
		author && p.Message == o.Message && slices.Equal(p.Declared, o.Declared)
}

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
	log, err := lookup.Read(tree, p.replaces)
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
