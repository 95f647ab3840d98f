package explain

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Quick reports whether commits that the default branch gets, which is at old, are accounted for by rules, or by
// transactions that propose exactly what a commit changes and whose records name it, and it alone, as their making: such a
// one accounts for nothing before. It reads no other transaction, however many there are. Where it reports false, Run has to
// be asked, with all of them. Index and Default of the options do not count.
func Quick(ctx context.Context, o Options, old string, commits []history.BranchCommit) (bool, error) {
	x := newIndex()
	x.part = true
	o.Index, o.Default = x, []string{old}
	r, err := Run(ctx, o, commits)
	if err != nil || len(r.Unexplained) == 0 { // by rules alone
		return err == nil, err
	}
	var ids []string
	for _, c := range commits {
		if _, not := r.Unexplained[c.ID]; !not || len(c.Parents) != 1 {
			continue
		}
		set, err := o.Code.Diff(ctx, c.Parents[0], c.ID)
		if errors.As(err, new(*patch.Error)) {
			return false, nil // no transaction proposes it
		}
		if err != nil {
			return false, err
		}
		proposed, err := ledger.Proposals(o.Ledger, set.ID())
		if err != nil || len(proposed) == 0 {
			return false, err
		}
		for _, p := range proposed {
			ids = append(ids, p.TransactionID)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		log, err := ledger.Read(o.Ledger, id)
		if err != nil {
			return false, err
		}
		if err := x.add(o.Ledger, id, log, recorded{}); err != nil {
			return false, err
		}
	}
	if r, err = Run(ctx, o, commits); err != nil || len(r.Unexplained) > 0 {
		return false, err
	}
	for _, e := range r.Explained {
		for _, id := range e.Transactions() {
			if made := x.entry(id).made; len(made) != 1 || made[0] != e.Commit {
				return false, nil
			}
		}
	}
	return true, nil
}
