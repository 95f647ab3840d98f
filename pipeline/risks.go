package pipeline

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// Risks are what people are shown of the patch before its diff: the list that the
// review recorded, and what the Policy of the Verdict protects.
func (g Gated) Risks() (risk.List, error) {
	list, err := g.recordedRisks()
	if err != nil {
		return risk.List{}, err
	}
	return list.With(risk.InPolicy(g.rules.Policy, g.Transaction().Pointers.Proposal.TargetFiles)), nil
}

// Shown is the hash of the recorded list of risks, "sha256:…": what a signed
// decision says that the person was shown. Of a transaction without one it is
// that of the list as it would be recorded.
func (g Gated) Shown() (string, error) {
	if a := g.log.Artifacts(ledger.KindRisks); len(a) > 0 {
		return a[0].StoredSHA256, nil
	}
	list, err := g.recordedRisks()
	return canon.Sum(list.Bytes()), err
}

func (g Gated) recordedRisks() (risk.List, error) {
	if g.risks != nil {
		return *g.risks, nil
	}
	id := g.Transaction().TransactionID
	for _, a := range g.log.Artifacts(ledger.KindRisks) {
		raw, err := ledger.ReadFile(g.Ledger.Tree, id, a.Path)
		if err != nil {
			return risk.List{}, fmt.Errorf("reading the risks: %w", err)
		}
		list, err := risk.Read(raw)
		if err != nil {
			err = &ledger.CorruptError{ID: id, Err: fmt.Errorf("%s: %w", a.Path, err)}
		}
		return list, err
	}
	return risk.List{}, &ledger.CorruptError{ID: id, Err: fmt.Errorf("it has no risks")}
}
