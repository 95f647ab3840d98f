package effect

import (
	"context"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// Claims say which applies are a working tree's to finish.
type Claims interface {
	// Begin notes that applies begin here, before the ledger is told; End that
	// they have ended, after it was. Begun are those in between, whatever crashed.
	Begin(applies ...string) error
	Begun() (applies []string, err error)
	End(applies ...string) error
}

// A Tree is the checked-out files.
type Tree interface {
	Claims
	// Lock keeps other applies out until the returned function is called.
	Lock(ctx context.Context) (unlock func(), err error)
	// Inspect compares each file on disk with its Before and After, in order.
	Inspect(files []patch.Change) ([]workspace.State, error)
	// Read returns a file, nil if there is none. base is what the commit has
	// there, for the mode where the file system does not tell.
	Read(path string, base *patch.File) (*patch.File, error)
	// Write brings every file to its After, all or as far as it gets, reads
	// back what it wrote and reports each file.
	Write(files []patch.Change) []result.Operation
}

// Files writes to the checked-out files.
type Files struct {
	Tree Tree
	Repo code.Repository
}

// Target is Worktree.
func (Files) Target() string { return Worktree }

// Lock locks the working tree.
func (e Files) Lock(ctx context.Context) (func(), error) { return e.Tree.Lock(ctx) }

// Base is HEAD.
func (e Files) Base(ctx context.Context, _ ledger.Transaction) (string, error) {
	return e.Repo.Head(ctx)
}

// Ready checks the files on disk: each as the change found it, or, where an
// apply was cut off or the working tree is the proposal, as the change leaves
// it.
func (e Files) Ready(ctx context.Context, c *Change, _ string) error {
	tx := c.Log.Transaction()
	open, resuming := c.Log.OpenApply()
	if resuming {
		if err := e.CanResume(open); err != nil {
			return err
		}
	}
	if !resuming && tx.Status != ledger.Failed && tx.Pointers.Proposal.Kind != ledger.KindWorktree {
		sparse, err := e.Clean(ctx, c.Set.Files())
		if err == nil && len(sparse) > 0 {
			err = &SparseError{sparse}
		}
		return err
	}
	states, err := e.Tree.Inspect(c.Set.Files())
	if err != nil {
		return err
	}
	var dirty []string
	for i, state := range states {
		if state == workspace.Other {
			dirty = append(dirty, c.Set.Files()[i].Path)
		}
	}
	if len(dirty) > 0 {
		return &DirtyError{dirty}
	}
	return nil
}

// Clean compares files on disk, and in the index, with the base. It returns
// those that are not checked out, which are neither clean nor dirty.
func (e Files) Clean(ctx context.Context, files []patch.Change) (sparse []string, err error) {
	states, err := e.Tree.Inspect(files)
	if err != nil {
		return nil, err
	}
	index, err := e.Repo.Index(ctx, files)
	if err != nil {
		return nil, err
	}
	dirty := index.Staged
	for i, state := range states {
		name := files[i].Path
		if state == workspace.Before || slices.Contains(dirty, name) {
			continue
		}
		if !slices.Contains(index.Sparse, name) {
			dirty = append(dirty, name)
			continue
		}
		sparse = append(sparse, name)
	}
	if len(dirty) > 0 {
		return nil, &DirtyError{dirty}
	}
	return sparse, nil
}

// Begin keeps a note that is there already: it is of a run that was killed, whose
// apply/start may reach the ledger yet.
func (e Files) Begin(start ledger.ApplyStart) (undo func() error, err error) {
	begun, err := e.Tree.Begun()
	if err != nil || slices.Contains(begun, noted(start)) {
		return nil, err
	}
	return func() error { return e.End(start) }, e.Tree.Begin(noted(start))
}

// CanResume refuses to take up an apply that was begun in another working tree,
// which it has left half-written.
func (e Files) CanResume(open ledger.ApplyStart) error {
	begun, err := e.Tree.Begun()
	if err == nil && !slices.Contains(begun, noted(open)) {
		err = &ElsewhereError{ID: open.TransactionID}
	}
	return err
}

// Write brings every file to what the change leaves.
func (e Files) Write(_ context.Context, c Change) Written {
	return Written{Operations: e.Tree.Write(c.Set.Files())}
}

// Found reports the files that are as the change leaves them as written.
func (e Files) Found(_ context.Context, files []patch.Change, _ ledger.ApplyStart, why string) (Written, error) {
	states, err := e.Tree.Inspect(files)
	if err != nil {
		return Written{}, err
	}
	ops := workspace.Predict(files)
	for i, op := range failed(files, "not written: "+why) {
		if states[i] != workspace.After {
			ops[i] = op
		}
	}
	return Written{Operations: ops}, nil
}

// End drops the note of an apply.
func (e Files) End(start ledger.ApplyStart) error { return e.Tree.End(noted(start)) }

// noted is how a working tree calls an apply.
func noted(start ledger.ApplyStart) string { return start.TransactionID + "/" + start.ApplyID }
