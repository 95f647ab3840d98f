package pipeline

import (
	"context"
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// Risks are what people are shown of the patch before its diff: the list that the
// review recorded, what this program finds in the patch where that is to be had,
// and what the Policy of the Verdict protects. Whoever can write the ledger can
// record a list that leaves things out.
func (g Gated) Risks(ctx context.Context) (risk.List, error) {
	list, known, err := g.recordedRisks()
	if err != nil {
		return risk.List{}, err
	}
	own, err := g.ownRisks(ctx)
	switch {
	case err == nil:
		list = own.With(list.Risks)
	case !known:
		list = g.unlisted(err)
	}
	return list.With(risk.InPolicy(g.rules.Policy, g.Transaction().Pointers.Proposal.TargetFiles)), nil
}

// Shown is the hash of the recorded list of risks, "sha256:…": what a signed
// decision says that the person was shown. Of a transaction without one it is
// that of the list as it would be recorded.
func (g Gated) Shown(ctx context.Context) (string, error) {
	if a := g.log.Artifacts(ledger.KindRisks); len(a) > 0 {
		return a[0].StoredSHA256, nil
	}
	list, err := g.ownRisks(ctx)
	if err != nil {
		list = g.unlisted(err)
	}
	return canon.Sum(list.Bytes()), nil
}

// recordedRisks reads the list that the review recorded, and reports whether there
// is one.
func (g Gated) recordedRisks() (list risk.List, known bool, err error) {
	recorded := g.log.Artifacts(ledger.KindRisks)
	if len(recorded) == 0 {
		return list, false, nil
	}
	id, file := g.Transaction().TransactionID, recorded[0].Path
	raw, err := ledger.ReadFile(g.Ledger.Tree, id, file)
	if err != nil {
		return list, false, fmt.Errorf("reading the risks: %w", err)
	}
	if list, err = risk.Read(raw); err != nil {
		return list, false, &ledger.CorruptError{ID: id, Err: fmt.Errorf("%s: %w", file, err)}
	}
	return list, true, nil
}

// ownRisks lists what this program finds in the patch.
func (g Gated) ownRisks(ctx context.Context) (risk.List, error) {
	tx := g.Transaction()
	set, err := g.patch.On(ctx, g.Ledger.Tree, tx, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return risk.List{}, err
	}
	_, found := g.secrets.Learn(set)
	return risk.NewList(tx.PatchID(), risk.Of(set, found)), nil
}

// unlisted says of every file that nobody knows its risks: the transaction was
// recorded before there were lists, and its patch is not to be had.
func (g Gated) unlisted(why error) risk.List {
	var all []risk.Risk
	for _, name := range g.Transaction().Pointers.Proposal.TargetFiles {
		all = append(all, risk.Risk{Kind: risk.Unlisted, Path: name, Detail: ledger.OneLine(g.secrets.Text(why.Error()), 200)})
	}
	return risk.NewList(g.Transaction().PatchID(), all)
}
