package explain

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Quick reports whether commits that the default branch gets, which is at old, are accounted for by rules, or by
// transactions that propose exactly what a commit changes and whose records name it, and it alone, as their making. Such a
// one accounts for nothing before only if nothing changed its files since it was proposed: what a record names is up to
// whoever wrote it. since are the commits that old has and another has not. It reads no other transaction, however many there
// are. Where it reports false, Run has to be asked, with all of them. Index and Default of the options do not count.
func Quick(ctx context.Context, o Options, old string, commits []code.BranchCommit, since func(base string) ([]code.BranchCommit, error)) (bool, error) {
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
		proposed, err := lookup.Proposals(o.Ledger, set.ID())
		if err != nil || len(proposed) == 0 {
			return false, err
		}
		for _, p := range proposed {
			ids = append(ids, p.TransactionID)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		log, err := lookup.Read(o.Ledger, id)
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
		if denied, err := r.Denied(e.Commit); err != nil || denied != "" {
			return false, err
		}
		for _, id := range e.Transactions() {
			entry := x.entry(id)
			if len(entry.made) != 1 || entry.made[0] != e.Commit {
				return false, nil
			}
			if fresh, err := r.judge.fresh(ctx, entry, old, since); err != nil || !fresh {
				return false, err
			}
		}
	}
	return true, nil
}

// Denied is the transaction that accounts for a commit and whose patch somebody denied, in whichever transaction and whenever,
// "" for none. That it was denied only after it was applied is up to whoever wrote the record.
func (r Result) Denied(commit string) (string, error) {
	for _, id := range r.Explained[commit].Transactions() {
		if denials, err := ledger.Denials(r.judge.Ledger, r.judge.Index.entry(id).patch); err != nil || len(denials) > 0 {
			return id, err
		}
	}
	return "", nil
}

// fresh reports whether no commit that old has, and the commit that a transaction was proposed on has not, changes one of its
// files. Of more than a few it does not find out.
func (j *judge) fresh(ctx context.Context, e *entry, old string, since func(base string) ([]code.BranchCommit, error)) (bool, error) {
	if e.base == old {
		return true, nil
	}
	newer, err := since(e.base)
	if err != nil || len(newer) > MaxRow {
		return false, err
	}
	for _, c := range newer {
		if len(c.Parents) == 0 {
			return false, nil
		}
		ch, err := j.change(ctx, c.Parents[0], c.ID)
		if err != nil || slices.ContainsFunc(ch.paths, func(path string) bool { return j.Index.covers(e, []string{path}) }) {
			return false, err
		}
	}
	return true, nil
}
