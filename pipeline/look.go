package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/pack"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// Find returns the ledger as it is now, and the id of the transaction in it that
// name means; an empty name means the one that is open, or with look the newest.
func (r *Runner) Find(ctx context.Context, name string, look bool) (ledger.Snapshot, string, error) {
	var all []string
	if name == "" && !look {
		all = []string{ledger.TransactionsDir} // each is looked at
	}
	snap, err := r.Ledger(ctx, all...)
	if err != nil {
		return snap, "", err
	}
	find := ledger.FindOpen
	switch {
	case name != "":
		find = func(tree fs.FS) (string, error) { return ledger.Find(tree, name) }
	case look:
		find = ledger.Newest
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
	all, damaged, err := ledger.Each(snap.Tree)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return tx.Closed }), damaged, err
}

// A Judge is History, of one Runner or another.
type Judge func(ctx context.Context, snap ledger.Snapshot, id string) (Gated, error)

// History returns the verdict on a transaction as a ledger has it, asking nobody
// and recording nothing.
func (r *Runner) History(ctx context.Context, snap ledger.Snapshot, id string) (Gated, error) {
	return r.judge(ctx, snap, id, nil)
}

// Result returns a transaction's ApplyResult, nil before it was applied, and the
// commit that was made, "" for a working tree. A transaction that was closed since, or
// that failed since, keeps it.
func (g Gated) Result() (*result.Result, string, error) {
	last := g.log.LastApply()
	if last == nil || !last.Success {
		return nil, "", nil
	}
	raw, err := ledger.ReadFile(g.Ledger.Tree, g.Transaction().TransactionID, ledger.ResultFile)
	if err != nil {
		return nil, "", err
	}
	res, err := result.Parse(raw)
	return &res, last.CommitAfter, err
}

// Diff returns what the ledger has of the patch that a transaction proposes,
// having checked that it is what was stored: its canonical bytes, or these
// without the secrets in them.
func (g Gated) Diff() ([]byte, error) { return ledger.StoredPatch(g.Ledger.Tree, g.Transaction()) }

// Patchset returns the patch that a transaction proposes on the commit that it was reviewed
// on. One that the ledger has only without secrets may be a *reviewed.RedactedError.
func (g Gated) Patchset(ctx context.Context) (patch.Patchset, error) {
	tx := g.Transaction()
	set, err := g.patch.On(ctx, g.Ledger.Tree, tx, tx.Pointers.Proposal.BaseCommit)
	if err == nil && set.ID() != tx.PatchID() {
		err = &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New("what is stored of its patch is another patch")}
	}
	return set, err
}

// Pack writes a transaction's change as a patch.json that another
// implementation of APPLY_SPEC can verify and apply to the base commit's files.
// A change that the format cannot express (content that is not UTF-8, an
// executable bit) is a *patch.Error.
func (r *Runner) Pack(ctx context.Context, snap ledger.Snapshot, id string) ([]byte, error) {
	log, err := ledger.Read(snap.Tree, id)
	if err != nil {
		return nil, err
	}
	tx := log.Transaction()
	set, err := r.source().On(ctx, snap.Tree, tx, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return nil, err
	}
	src := tx.Pointers.Proposal.Source()
	p, err := pack.Of(set, src.ProposalID, src.ProposalHash)
	if err != nil {
		return nil, err
	}
	return p.Line()
}

// Explain says what a patch would meet, and records nothing.
func (r *Runner) Explain(ctx context.Context, in input.Change) (risk.Explanation, Known, error) {
	g, err := r.gather(ctx, in)
	if err != nil {
		return risk.Explanation{}, g.known, err
	}
	var secrets []policy.ExplainedSecret
	for _, f := range g.found {
		secrets = append(secrets, policy.ExplainedSecret(f))
	}
	e := g.rules.Policy.ExplainPatch(g.rules.Commit, g.ID, g.Set.Paths(), secrets)
	for i, p := range e.Paths {
		if !slices.ContainsFunc(p.Rules, func(m policy.Met) bool { return m.Owners }) || g.rules.OwnersOf == nil {
			continue
		}
		owners, err := g.rules.OwnersOf(p.Path)
		if err != nil {
			return risk.Explanation{}, g.known, err
		}
		e.Paths[i].OwnedBy = append([]string{}, owners...)
	}
	asked := checks.Asked{}
	if in.Proposal != nil {
		asked = checks.AskedBy(*in.Proposal)
	}
	for _, w := range checks.WantedCommands(g.rules.Policy, asked) {
		e.Commands = append(e.Commands, w.Target)
	}
	return risk.Explanation{Explanation: e, Risks: g.risks.Under(g.rules.Policy, g.Set.Paths())}, g.known, nil
}

// CheckTree runs the commands of the Policy on the tree of a commit.
func (r *Runner) CheckTree(ctx context.Context, commit string) (checks.Results, error) {
	rules, err := r.rules(ctx, "")
	if err != nil {
		return checks.Results{}, err
	}
	return r.checker().HandOver(ctx, rules.Policy, checks.Asked{}, func() (string, error) { return commit, nil })
}

// CheckTransaction runs the commands that a transaction needs on the tree that
// its patch makes of what it would be applied to, and records nothing.
func (r *Runner) CheckTransaction(ctx context.Context, snap ledger.Snapshot, id string, o ApplyOptions) (checks.Results, Known, error) {
	g, err := r.judge(ctx, snap, id, nil)
	if err == nil && g.Transaction().Status == ledger.Applied {
		err = &ClosedError{id, ledger.Applied}
	} else if err == nil {
		err = ended(g.Transaction())
	}
	if err != nil {
		return checks.Results{}, r.known(), err
	}
	to, err := r.target(ctx, g, o, r.Reader())
	if err != nil {
		return checks.Results{}, r.known(), err
	}
	p, err := r.approvedPatch(ctx, to, g, snap)
	if err != nil {
		return checks.Results{}, r.known(), err
	}
	r = r.With(p.known)
	asked, err := checks.ReadAsked(snap.Tree, g.Transaction())
	if err != nil {
		return checks.Results{}, r.known(), err
	}
	results, err := r.checker().HandOver(ctx, g.rules.Policy, asked, func() (string, error) { return r.builder().Build(ctx, p.Change, "", "") })
	return results, r.known(), err
}
