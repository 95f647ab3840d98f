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

// prepared is an approved change on the commit that it is about to be applied
// to.
type prepared struct {
	set  patch.Patchset
	base string
}

// approvedPatch reads the approved bytes from the ledger, checks that they are
// those bytes, and puts them on the present base.
func (r *Runner) approvedPatch(ctx context.Context, g Gated, snap Snapshot) (prepared, error) {
	tx := g.Transaction()
	diff, err := storedPatch(snap.Tree, tx)
	if err != nil {
		return prepared{}, err
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return prepared{}, &ledger.CorruptError{ID: tx.TransactionID, Err: err}
	}
	p := prepared{}
	if p.base, err = r.base(ctx, g); err != nil {
		return prepared{}, err
	}
	tree, err := r.Repo.Tree(ctx, p.base)
	if err != nil {
		return prepared{}, err
	}
	if err := unchanged(tree, tx); err != nil {
		return prepared{}, r.elsewhere(ctx, p.base, tx, err)
	}
	p.set, err = parsed.Resolve(tree)
	var unfit *patch.Error
	switch {
	case errors.As(err, &unfit): // the content is as it was: a mode, or a name beside it, changed
		return prepared{}, r.elsewhere(ctx, p.base, tx, &SupersededError{tx.TransactionID, []string{unfit.Path}})
	case err != nil:
		return prepared{}, fmt.Errorf("putting the approved patch on %s: %w", p.base, err)
	case p.set.ID() != tx.PatchID():
		return prepared{}, r.elsewhere(ctx, p.base, tx, &SupersededError{tx.TransactionID, tx.Pointers.Proposal.TargetFiles})
	}
	return p, recompute(tree, *tx.Pointers.Proposal)
}

// elsewhere tells a base that has moved on, which supersedes a transaction for
// good, from a HEAD on another branch, where nothing is to be recorded.
func (r *Runner) elsewhere(ctx context.Context, base string, tx ledger.Transaction, err error) error {
	var superseded *SupersededError
	if !errors.As(err, &superseded) {
		return err
	}
	reviewed := tx.Pointers.Proposal.BaseCommit
	descends, ancestorErr := r.Repo.Descends(ctx, base, reviewed)
	if ancestorErr != nil {
		return ancestorErr
	}
	if !descends {
		return &ElsewhereError{tx.TransactionID, reviewed}
	}
	return err
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

// base is the commit to check against: HEAD, or for an apply that was cut off
// the one it began on.
func (r *Runner) base(ctx context.Context, g Gated) (string, error) {
	if open, ok := g.log.OpenApply(); ok {
		return open.BaseCommit, nil
	}
	return r.Repo.Head(ctx)
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
	if err := r.begunHere(g); err != nil {
		return err
	}
	if !resuming && tx.Status != ledger.Failed && tx.Pointers.Proposal.Kind != KindWorktree {
		return r.clean(ctx, set.Files())
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

// begunHere refuses to take up an apply that was begun in another working tree,
// which it has left half-written.
func (r *Runner) begunHere(g Gated) error {
	open, resuming := g.log.OpenApply()
	if !resuming {
		return nil
	}
	begun, err := r.Worktree.Claim().Begun()
	if err == nil && begun != open.TransactionID+"/"+open.ApplyID {
		err = &ElsewhereError{ID: open.TransactionID}
	}
	return err
}
