package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// approvedPatch reads the approved bytes from the ledger, checks that they are
// those bytes, and puts them on the present base.
func (r *Runner) approvedPatch(ctx context.Context, g Gated, snap Snapshot) (patch.Patchset, error) {
	tx := g.Transaction()
	corrupt := func(err error) error { return &ledger.CorruptError{ID: tx.TransactionID, Err: err} }
	diff, err := storedPatch(snap.Tree, tx)
	if err != nil {
		return patch.Patchset{}, err
	}
	base, err := r.base(ctx, g)
	if err != nil {
		return patch.Patchset{}, err
	}
	if err := unchanged(base, tx); err != nil {
		return patch.Patchset{}, err
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return patch.Patchset{}, corrupt(err)
	}
	set, err := parsed.Resolve(base)
	if err != nil {
		return patch.Patchset{}, fmt.Errorf("the approved patch no longer fits: %w", err)
	}
	if set.ID() != tx.PatchID() {
		return patch.Patchset{}, corrupt(errors.New("the stored patch means another change on this base"))
	}
	return set, recompute(base, *tx.Pointers.Proposal)
}

// recompute runs a recipe again: what it makes of the base must be what was
// approved (seed: checkpoint 10, section 1).
func recompute(base fs.FS, p ledger.Proposal) error {
	if p.Kind != KindRecipe {
		return nil
	}
	in, err := RecipeInput(p.Needle, p.TargetFiles, "")
	if err != nil {
		return err
	}
	set, err := in.Resolve(base)
	if err == nil && set.ID() != p.PatchID {
		err = &patch.Error{Message: "the recipe gives another patch now: " + set.ID()}
	}
	return err
}

// base is the tree to check against: HEAD's, or for an apply that was cut off
// the one it began on.
func (r *Runner) base(ctx context.Context, g Gated) (fs.FS, error) {
	if open, ok := g.log.OpenApply(); ok {
		return r.Repo.Tree(ctx, open.BaseCommit)
	}
	head, err := r.Repo.Head(ctx)
	if err != nil {
		return nil, err
	}
	return r.Repo.Tree(ctx, head)
}

// unchanged compares the base with what the review recorded.
func unchanged(base fs.FS, tx ledger.Transaction) error {
	e := &SupersededError{ID: tx.TransactionID}
	for _, file := range tx.Pointers.Proposal.TargetFiles {
		f, err := patch.Lookup(base, file)
		if _, unfit := err.(*patch.Error); err != nil && !unfit {
			return err
		}
		want := tx.Pointers.Proposal.BaseSHA256[file]
		if have := f.Sum(); err != nil || (have == nil) != (want == nil) || have != nil && *have != *want {
			e.Files = append(e.Files, file)
		}
	}
	if len(e.Files) > 0 {
		return e
	}
	return nil
}

// supersede records that the base of an approved change is gone.
func (r *Runner) supersede(ctx context.Context, why *SupersededError) error {
	_, err := r.update(ctx, func(snap Snapshot) (*ledger.Entry, error) {
		log, err := ledger.Read(snap.Tree, why.ID)
		if err != nil || log.Transaction().Closed {
			return nil, err
		}
		s := ledger.NewStage(log, r.Now())
		s.Status(ledger.Superseded, ledger.OneLine("the base changed: "+list(why.Files), 300))
		s.Close()
		return s.Entry(ledger.Title{Stage: "apply", Outcome: string(ledger.Superseded), Subject: "superseded, the base changed: " + list(why.Files)}, false)
	})
	if err != nil {
		return err
	}
	return why
}

// ready checks the files on disk: each as the change found it, or, where an
// apply was cut off or the working tree is the proposal, as the change leaves it.
func (r *Runner) ready(ctx context.Context, g Gated, set patch.Patchset) error {
	tx := g.Transaction()
	_, resuming := g.log.OpenApply()
	if !resuming && tx.Status != ledger.Failed && tx.Pointers.Proposal.Kind != KindWorktree {
		return r.refuseDirty(ctx, set.Files())
	}
	states, err := r.Worktree.Inspect(set.Files())
	if err != nil {
		return err
	}
	var dirty []string
	for i, state := range states {
		if state == workspace.Other {
			dirty = append(dirty, set.Files()[i].Path)
		}
	}
	if len(dirty) > 0 {
		return &DirtyError{dirty}
	}
	return nil
}
