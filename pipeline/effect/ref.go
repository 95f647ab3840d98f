package effect

import (
	"context"
	"errors"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// A Ref builds a commit on the tip of a ref and moves the ref to it: one of
// the repository, or of the one that a pull request's head is in.
type Ref struct {
	Name    string // in full
	Refs    code.Refs
	Repo    code.Repository
	Builder Builder
	Host    string // of the forge whose accounts commits are of, "" for none
	// HeadOf is the pull request whose head branch the ref is, which nobody makes
	// anew; 0 for none.
	HeadOf int
}

// Target is the ref's name.
func (e *Ref) Target() string { return e.Name }

// Lock locks nothing: a ref is moved by compare-and-swap.
func (e *Ref) Lock(context.Context) (func(), error) { return func() {}, nil }

// Base is the ref's tip; a ref that is not there yet begins where the change
// was reviewed.
func (e *Ref) Base(ctx context.Context, tx ledger.Transaction) (string, error) {
	tip, err := e.Refs.Ref(ctx, e.Name)
	if err == nil && tip == "" {
		tip, err = tx.Pointers.Proposal.BaseCommit, e.gone()
	}
	return tip, err
}

// gone refuses to make the head branch of a pull request anew: whoever deleted
// it did so on purpose, and the pull request would not take it up again.
func (e *Ref) gone() error {
	if e.HeadOf == 0 {
		return nil
	}
	return &NoHeadError{e.HeadOf, strings.TrimPrefix(e.Name, "refs/heads/")}
}

// Ready builds the commit, whose tree the required checks then run on: a branch
// never moves to a tree whose checks failed.
func (e *Ref) Ready(ctx context.Context, c *Change, key string) error {
	err := e.Refs.CheckRef(ctx, e.Name)
	if err == nil {
		c.Commit, err = e.Builder.Build(ctx, *c, e.Host, key)
	}
	return err
}

// Begin notes nothing.
func (e *Ref) Begin(ledger.ApplyStart) (undo func() error, err error) { return nil, nil }

// CanResume: any clone can finish what it can build again.
func (e *Ref) CanResume(ledger.ApplyStart) error { return nil }

// Write moves the ref by compare-and-swap and reads the files back from the
// object database. A ref that has the commit already, or one after it, is left
// alone.
func (e *Ref) Write(ctx context.Context, c Change) Written {
	files := c.Set.Files()
	fail := func(err error) Written {
		done := Written{Operations: failed(files, "cannot write: "+err.Error()), Before: c.Base}
		if errors.Is(err, ledger.ErrMoved) {
			done.Moved = ledger.ErrMoved
		}
		return done
	}
	err := e.place(ctx, c)
	if errors.Is(err, ledger.ErrMoved) { // it may have been another run of this apply
		err = e.place(ctx, c)
	}
	if err != nil {
		return fail(err)
	}
	tree, err := e.Repo.Tree(ctx, c.Commit)
	if err != nil {
		return fail(err)
	}
	done := Written{Operations: workspace.Predict(files), Before: c.Base, After: c.Commit}
	for i, f := range files {
		if got, err := patch.Lookup(tree, f.Path); err != nil || !got.Equal(f.After) {
			done.Operations[i] = failed(files[i:i+1], workspace.Mismatch)[0]
		}
	}
	return done
}

// place moves the ref to the commit that was built, unless it has that already.
func (e *Ref) place(ctx context.Context, c Change) error {
	tip, err := e.Refs.Ref(ctx, e.Name)
	there := tip == c.Commit
	if err == nil && !there && tip != "" && tip != c.Base { // others may have gone on from it since
		there, err = e.Repo.Descends(ctx, tip, c.Commit)
	}
	if err != nil || there {
		return err
	}
	old := c.Base
	if tip == "" {
		if old, err = "", e.gone(); err != nil {
			return err
		}
	}
	return e.Refs.MoveRef(ctx, e.Name, old, c.Commit)
}

// Found: the ref was moved, or it was not; nothing is half-done.
func (e *Ref) Found(ctx context.Context, files []patch.Change, open ledger.ApplyStart, why string) (Written, error) {
	tip, err := e.Refs.Ref(ctx, e.Name)
	if err != nil {
		return Written{}, err
	}
	unwritten := failed(files, "not written: "+why)
	if tip == "" || tip == open.BaseCommit {
		return Written{Operations: unwritten, Before: open.BaseCommit}, nil
	}
	tree, err := e.Repo.Tree(ctx, tip)
	if err != nil {
		return Written{}, err
	}
	ops := workspace.Predict(files)
	for i, f := range files {
		if got, err := patch.Lookup(tree, f.Path); err != nil || !got.Equal(f.After) {
			ops[i] = unwritten[i]
		}
	}
	return Written{Operations: ops, Before: open.BaseCommit, After: tip}, nil
}

// End has nothing to forget.
func (e *Ref) End(ledger.ApplyStart) error { return nil }
