package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Find returns the ledger as it is now, and the id of the transaction in it that
// name means; an empty name means the one that is open, or with look the newest.
func (r *Runner) Find(ctx context.Context, name string, look bool) (writing.Snapshot, string, error) {
	var all []string
	if name == "" && !look {
		all = []string{ledger.TransactionsDir} // each is looked at
	}
	snap, err := r.Ledger(ctx, all...)
	if err != nil {
		return snap, "", err
	}
	find := lookup.FindOpen
	switch {
	case name != "":
		find = func(tree fs.FS) (string, error) { return lookup.Find(tree, name) }
	case look:
		find = lookup.Newest
	}
	id, err := find(snap.Tree)
	return snap, id, err
}

// Open returns the open transactions, oldest first, and those of which nobody can
// tell whether they are.
func (r *Runner) Open(ctx context.Context) (open []ledger.Transaction, damaged []*ledger.CorruptError, err error) {
	snap, err := r.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return nil, nil, err
	}
	all, damaged, err := lookup.Each(snap.Tree)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return tx.Closed }), damaged, err
}

// Still is the Runner for the History of several transactions as they stand at one moment: HEAD, and the Policy of each
// branch, are read once.
func (r *Runner) Still() *Runner {
	still := *r
	head := once(func(ctx context.Context, _ struct{}) (string, error) { return r.Repo.Head(ctx) })
	still.Repo, still.Rules = stillHead{r.Repo, head}, once(r.Rules)
	return &still
}

type stillHead struct {
	code.Repository
	head func(context.Context, struct{}) (string, error)
}

func (s stillHead) Head(ctx context.Context) (string, error) { return s.head(ctx, struct{}{}) }

// once asks for each key once, and again only after an error.
func once[K comparable, V any](ask func(context.Context, K) (V, error)) func(context.Context, K) (V, error) {
	var mu sync.Mutex
	known := map[K]V{}
	return func(ctx context.Context, key K) (V, error) {
		mu.Lock()
		defer mu.Unlock()
		v, there := known[key]
		if there {
			return v, nil
		}
		v, err := ask(ctx, key)
		if err == nil {
			known[key] = v
		}
		return v, err
	}
}

// History returns the verdict on a transaction as a ledger has it, asking nobody
// and recording nothing.
func (r *Runner) History(ctx context.Context, snap writing.Snapshot, id string) (Judgement, error) {
	return r.judge(ctx, snap, id, nil)
}

// Result returns a transaction's ApplyResult, nil before it was applied, and the
// commit that was made, "" for a working tree. A transaction that was closed since, or
// that failed since, keeps it.
func (g Judgement) Result() (*ledger.ApplyResult, string, error) {
	last := ledger.Last[*ledger.ApplyComplete](g.log)
	if last == nil || !last.Success {
		return nil, "", nil
	}
	raw, err := ledger.ReadFile(g.Ledger.Tree, g.Transaction().TransactionID, ledger.ResultFile)
	if err != nil {
		return nil, "", err
	}
	res, err := ledger.ParseResult(raw)
	return &res, last.CommitAfter, err
}

// Diff returns what the ledger has of the patch that a transaction proposes,
// having checked that it is what was stored: its canonical bytes, or these
// without the secrets in them.
func (g Judgement) Diff() ([]byte, error) { return lookup.StoredPatch(g.Ledger.Tree, g.Transaction()) }

// Patchset returns the patch that a transaction proposes on the commit that it was reviewed
// on. One that the ledger has only without secrets may be a *RedactedError.
func (g Judgement) Patchset(ctx context.Context) (patch.Patchset, error) {
	tx := g.Transaction()
	set, err := g.patch.On(ctx, g.Ledger.Tree, tx, tx.Pointers.Proposal.BaseCommit)
	if err == nil && set.ID() != tx.PatchID() {
		err = &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New("what is stored of its patch is another patch")}
	}
	return set, err
}

// Advice is what tools are recorded to have said of the patch, in order. It may have come after the Verdict.
func (g Judgement) Advice() ([]approval.Advice, error) {
	var out []approval.Advice
	for _, stored := range g.log.Artifacts(ledger.KindAdvice) {
		a, err := approval.ReadAdvice(g.dir(), g.log, stored)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// Provenances are where the transaction's patch came from, each time that it was proposed.
func (g Judgement) Provenances() ([]ledger.Provenance, error) {
	dir, err := fs.Sub(g.Ledger.Tree, ledger.Dir(g.Transaction().TransactionID))
	if err != nil {
		return nil, err
	}
	return lookup.Provenances(dir, g.log)
}

// CheckTree runs the commands of the Policy on the tree of a commit.
func (r *Runner) CheckTree(ctx context.Context, commit string) (checks.Results, error) {
	rules, err := r.CurrentRules(ctx, "")
	if err != nil {
		return checks.Results{}, err
	}
	return r.checker().HandOver(ctx, rules.Policy, checks.Asked{}, func() (string, error) { return commit, nil })
}

// CheckTransaction runs the commands that a transaction needs on the tree that
// its patch makes of what it would be applied to, and records nothing.
func (r *Runner) CheckTransaction(ctx context.Context, snap writing.Snapshot, id string, o ApplyOptions) (checks.Results, Known, error) {
	g, err := r.judge(ctx, snap, id, nil)
	if err == nil && g.Transaction().Status == ledger.Applied {
		err = ClosedError(id, ledger.Applied)
	} else if err == nil {
		err = ended(g.Transaction())
	}
	if err != nil {
		return checks.Results{}, r.Known(), err
	}
	to, err := r.target(ctx, g, o, r.Reader())
	if err != nil {
		return checks.Results{}, r.Known(), err
	}
	p, err := r.approvedPatch(ctx, to, g, snap)
	if err != nil {
		return checks.Results{}, r.Known(), err
	}
	r = r.With(p.known)
	asked, err := checks.ReadAsked(snap.Tree, g.Transaction())
	if err != nil {
		return checks.Results{}, r.Known(), err
	}
	results, err := r.checker().HandOver(ctx, g.rules.Policy, asked, func() (string, error) { return r.builder().Build(ctx, p.Change, "", "") })
	return results, r.Known(), err
}
