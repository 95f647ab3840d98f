package pipeline

import (
	"context"
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// driftTo tells how far what a change goes onto has moved, up to a commit, since
// the commits that approvals were made on; each is looked at once. What cannot be
// told is said to be unknown, whatever the reason.
func (r *Runner) driftTo(ctx context.Context, tx ledger.Transaction, to string) func(from string) approval.Drift {
	known := map[string]approval.Drift{}
	return func(from string) approval.Drift {
		if _, asked := known[from]; !asked {
			known[from] = r.drift(ctx, tx, from, to)
		}
		return known[from]
	}
}

func (r *Runner) drift(ctx context.Context, tx ledger.Transaction, from, to string) approval.Drift {
	p := tx.Pointers.Proposal
	switch {
	case from == "" || to == "":
		return approval.UnknownDrift(from, to, "there is no commit to compare with")
	case from == to:
		return forge.DriftBetween(from, to, 0, nil, p.TargetFiles)
	}
	commits, changed, err := 0, []string(nil), error(nil)
	if p.PullRequest > 0 && r.Code != nil {
		commits, changed, err = r.Code.Drift(ctx, p.PullRequest, from, to)
	} else {
		commits, changed, err = r.Repo.Drift(ctx, from, to)
	}
	if err != nil {
		return approval.UnknownDrift(from, to, r.Secrets.Text(err.Error()))
	}
	return forge.DriftBetween(from, to, commits, changed, p.TargetFiles)
}

// base is the commit that the change would go onto as far as a stage sees it: one
// that an apply was begun on is finished there.
func (g Judgement) base() string {
	if open, applying := g.log.OpenApply(); applying {
		return open.BaseCommit
	}
	return g.head
}

// onto measures drift up to the commit that a change is about to go onto. A branch
// that begins at the commit which was reviewed has not moved: people were shown the
// change to that.
func (r *Runner) onto(ctx context.Context, g Judgement, to effect.Effect, base string) Judgement {
	if base == g.base() || g.rules.Policy.Approvals.Drift == nil {
		return g
	}
	tx := g.Transaction()
	ref, isRef := to.(*effect.Ref)
	if isRef && ref.HeadOf == 0 && base == tx.Pointers.Proposal.BaseCommit {
		return g
	}
	g.drift, g.driftsTo = r.driftTo(ctx, tx, base), base
	return g
}

// driftAsItWas takes from the record how far the base had moved before an event;
// where the Policy set no bound, nobody had to know.
func (g *Judgement) driftAsItWas(event int) error {
	if g.rules.Policy.Approvals.Drift == nil {
		return nil
	}
	doc, err := forge.ReadDrift(g.Ledger.Tree, g.log, event)
	if err != nil {
		return fmt.Errorf("what its verdict was: %w", err)
	}
	g.drift, g.driftsTo = doc.Of, doc.To
	return nil
}
