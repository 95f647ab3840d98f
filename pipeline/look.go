package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/pack"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// History returns the verdict on a transaction as it stands, recording nothing.
func (r *Runner) History(ctx context.Context, id string) (Gated, error) {
	snap, err := r.last(ctx, transaction(id)...)
	if err != nil {
		return Gated{}, err
	}
	g, err := r.judge(ctx, snap, id)
	g.LedgerCommit = snap.Tip
	return g, err
}

// snapshot returns the ledger as it stands now.
func (r *Runner) snapshot(ctx context.Context, paths ...string) (Snapshot, error) {
	snap, err := r.Store.Snapshot(ctx, paths...)
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading the ledger: %w", err)
	}
	if snap.Tip != "" {
		err = ledger.CheckSchema(snap.Tree) // never act on, or extend, something else
	}
	r.tip = &snap.Tip
	return snap, err
}

// transaction is what a stage reads of a ledger: the transaction's directory.
func transaction(id string) []string {
	if ledger.CheckID(id) != nil {
		return nil
	}
	return []string{ledger.Dir(id)}
}

// last returns the ledger as the last stage left it.
func (r *Runner) last(ctx context.Context, paths ...string) (Snapshot, error) {
	if r.tip == nil {
		return r.snapshot(ctx, paths...)
	}
	snap, err := r.Store.At(ctx, *r.tip)
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading the ledger: %w", err)
	}
	return snap, nil
}

// Find returns the id of the transaction that name means; an empty name means
// the one that is open, or with look the newest.
func (r *Runner) Find(ctx context.Context, name string, look bool) (string, error) {
	var all []string
	if name == "" && !look {
		all = []string{ledger.TransactionsDir} // each is looked at
	}
	snap, err := r.last(ctx, all...)
	switch {
	case err != nil:
		return "", err
	case name != "":
		return ledger.Find(snap.Tree, name)
	case look:
		return ledger.Newest(snap.Tree)
	}
	return ledger.FindOpen(snap.Tree)
}

// List returns the state of every transaction, oldest first.
func (r *Runner) List(ctx context.Context) ([]ledger.Transaction, error) {
	snap, err := r.last(ctx, ledger.TransactionsDir)
	if err != nil {
		return nil, err
	}
	return ledger.All(snap.Tree)
}

// Log returns a transaction's events.
func (r *Runner) Log(ctx context.Context, id string) (*ledger.Log, error) {
	snap, err := r.last(ctx, transaction(id)...)
	if err != nil {
		return nil, err
	}
	return ledger.Read(snap.Tree, id)
}

// Directory returns a transaction's directory as it is in the ledger.
func (r *Runner) Directory(ctx context.Context, id string) (fs.FS, error) {
	snap, err := r.last(ctx, transaction(id)...)
	if err != nil {
		return nil, err
	}
	return fs.Sub(snap.Tree, ledger.Dir(id))
}

// Result returns a transaction's ApplyResult, nil before it is applied, and the
// commit that was made, "" for a working tree.
func (r *Runner) Result(ctx context.Context, id string) (*result.Result, string, error) {
	snap, err := r.last(ctx, transaction(id)...)
	if err != nil {
		return nil, "", err
	}
	done, err := r.already(snap, id)
	if done == nil || err != nil {
		return nil, "", err
	}
	return &done.Result, done.Commit, nil
}

// Diff returns what the ledger has of the patch that a transaction proposes,
// having checked that it is what was stored: its canonical bytes, or these
// without the secrets in them.
func (r *Runner) Diff(ctx context.Context, id string) ([]byte, error) {
	snap, err := r.last(ctx, transaction(id)...)
	if err != nil {
		return nil, err
	}
	log, err := ledger.Read(snap.Tree, id)
	if err != nil {
		return nil, err
	}
	diff, err := storedPatch(snap.Tree, log.Transaction())
	return bytes.Clone(diff), err
}

// Pack writes a transaction's change as a patch.json that another
// implementation of APPLY_SPEC can verify and apply to the base commit's files.
// A change that the format cannot express (content that is not UTF-8, an
// executable bit) is a *patch.Error.
func (r *Runner) Pack(ctx context.Context, id string) ([]byte, error) {
	log, err := r.Log(ctx, id)
	if err != nil {
		return nil, err
	}
	tx := log.Transaction()
	set, err := r.onCommit(ctx, tx, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return nil, err
	}
	ops, err := set.Operations()
	if err != nil {
		return nil, err
	}
	src := tx.Pointers.Proposal.Source()
	p := pack.Pack{PatchSchemaVersion: pack.SchemaVersion, SourceProposalID: src.ProposalID, SourceProposalHash: src.ProposalHash}
	for _, op := range ops {
		o := pack.Operation{Op: op.Op, Path: op.Path}
		if op.Op != "delete" {
			if !utf8.Valid(op.Content) || bytes.IndexByte(op.Content, 0) >= 0 {
				return nil, &patch.Error{Path: op.Path, Message: "patch.json can only hold UTF-8 text"}
			}
			content := string(op.Content)
			o.Content, o.ExpectedHash = &content, canon.Sum(op.Content)
		}
		p.Operations = append(p.Operations, o)
	}
	return p.Line()
}

// onCommit puts a transaction's patch on a commit.
func (r *Runner) onCommit(ctx context.Context, tx ledger.Transaction, commit string) (patch.Patchset, error) {
	snap, err := r.last(ctx, transaction(tx.TransactionID)...)
	if err != nil {
		return patch.Patchset{}, err
	}
	diff, err := r.rawPatch(ctx, snap.Tree, tx)
	if err != nil {
		return patch.Patchset{}, err
	}
	base, err := r.Repo.Tree(ctx, commit)
	if err != nil {
		return patch.Patchset{}, err
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return patch.Patchset{}, err
	}
	return parsed.Resolve(base)
}
