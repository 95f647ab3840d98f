package effect

import (
	"context"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
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
	Inspect(files []patch.Change) ([]State, error)
	// Local returns changes of a commit as they are on disk, by the attributes of the
	// commit and, where they are approved, of the changes.
	Local(ctx context.Context, commit fs.FS, files []patch.Change, approved bool) ([]patch.Change, error)
	// Stored returns a reader of the files as Git would store them, by the attributes
	// of a commit with changes; a file that holds more than that is as it is.
	Stored(ctx context.Context, commit fs.FS, changes []patch.Change) (Reader, error)
	// Proposed returns a reader of what Git would store of some files, whatever they hold
	// beside it, which reads none that is too large.
	Proposed(ctx context.Context, commit fs.FS, changes []patch.Change, names []string) (LimitedReader, error)
	// Changed are the attributes among changed files.
	Changed(changed []string) ([]patch.Change, error)
	// Write brings every file to its After, all or as far as it gets, reads
	// back what it wrote and reports each file.
	Write(files []patch.Change) []ledger.Operation
}

// Files writes to the checked-out files and, where there is a Checkout, commits them.
type Files struct {
	Tree     Tree
	Repo     code.Repository
	Checkout code.Checkout
	Builder  Builder // with a Checkout
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
// it. Where they are to be committed, nothing of them may be staged.
func (e Files) Ready(ctx context.Context, c *Change, key string) error {
	err := e.ready(ctx, c)
	if err != nil || e.Checkout == nil {
		return err
	}
	if c.Branch, err = e.Checkout.Branch(ctx); err != nil {
		return err
	}
	if c.Commit, err = e.Builder.Build(ctx, *c, "", key); err != nil {
		return err
	}
	head, err := e.Repo.Head(ctx)
	if err != nil || head == c.Commit { // by an apply that was cut off
		return err
	}
	index, err := e.Repo.Index(ctx, c.Set.Files())
	if err == nil && len(index.Staged) > 0 {
		err = &code.UncommittableError{Why: "staged already: " + escape.QuoteList(index.Staged), Staged: index.Staged}
	}
	return err
}

func (e Files) ready(ctx context.Context, c *Change) error {
	tx := c.Log.Transaction()
	open, resuming := c.Log.OpenApply()
	if resuming {
		if err := e.CanResume(open); err != nil {
			return err
		}
	}
	if !resuming && tx.Status != ledger.Failed && tx.Pointers.Proposal.Kind != ledger.KindWorktree {
		sparse, err := e.Clean(ctx, c.Base, c.Set.Files())
		if err == nil && len(sparse) > 0 {
			err = fault.Refuse(ledger.Plural(len(sparse), "file is", "files are")+" not checked out (git sparse-checkout): "+escape.QuoteList(sparse), "countersign run TX --to branch")
		}
		return err
	}
	states, err := e.Inspect(ctx, c.Base, c.Set.Files())
	if err != nil {
		return err
	}
	var dirty []string
	for i, state := range states {
		if state == Other {
			dirty = append(dirty, c.Set.Files()[i].Path)
		}
	}
	if len(dirty) > 0 {
		return &DirtyError{dirty, absent(c.Set.Files(), dirty)}
	}
	return nil
}

// Clean compares files on disk, and in the index, with the base commit, by its
// attributes alone. It returns those that are not checked out, which are neither
// clean nor dirty.
func (e Files) Clean(ctx context.Context, base string, files []patch.Change) (sparse []string, err error) {
	local, err := e.local(ctx, base, files, false)
	if err != nil {
		return nil, err
	}
	states, err := e.Tree.Inspect(local)
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
		if state == Before || slices.Contains(dirty, name) {
			continue
		}
		if !slices.Contains(index.Sparse, name) {
			dirty = append(dirty, name)
			continue
		}
		sparse = append(sparse, name)
	}
	if len(dirty) > 0 {
		return nil, &DirtyError{dirty, absent(files, dirty)}
	}
	return sparse, nil
}

// absent are those of some paths that were no files before.
func absent(files []patch.Change, paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		i := slices.IndexFunc(files, func(c patch.Change) bool { return c.Path == path })
		return i < 0 || files[i].Before != nil
	})
}

func (e Files) local(ctx context.Context, base string, files []patch.Change, approved bool) ([]patch.Change, error) {
	tree, err := e.Repo.Tree(ctx, base)
	if err != nil {
		return nil, err
	}
	return e.Tree.Local(ctx, tree, files, approved)
}

// Inspect compares files on disk with an approved change of a commit, in order.
func (e Files) Inspect(ctx context.Context, base string, files []patch.Change) ([]State, error) {
	local, err := e.local(ctx, base, files, true)
	if err != nil {
		return nil, err
	}
	return e.Tree.Inspect(local)
}

// Done reports whether every file on disk is as an approved change of a commit
// leaves it.
func (e Files) Done(ctx context.Context, base string, files []patch.Change) (bool, error) {
	states, err := e.Inspect(ctx, base, files)
	return err == nil && !slices.ContainsFunc(states, func(s State) bool { return s != After }), err
}

// Stored returns a reader of the files as Git would store them after a change of
// a commit, for what is held to what was approved.
func (e Files) Stored(ctx context.Context, base string, changes []patch.Change) (Reader, error) {
	tree, err := e.Repo.Tree(ctx, base)
	if err != nil {
		return nil, err
	}
	return e.Tree.Stored(ctx, tree, changes)
}

// Changed returns the paths whose file Git would store otherwise than HEAD has it,
// with a reader of what that is.
func (e Files) Changed(ctx context.Context) ([]string, LimitedReader, error) {
	changed, err := e.Repo.Changed(ctx)
	if err != nil {
		return nil, nil, err
	}
	rules, err := e.Tree.Changed(changed)
	if err != nil {
		return nil, nil, err
	}
	head, err := e.Repo.Head(ctx)
	if err != nil {
		return nil, nil, err
	}
	tree, err := e.Repo.Tree(ctx, head)
	if err != nil {
		return nil, nil, err
	}
	read, err := e.Tree.Proposed(ctx, tree, rules, changed)
	return changed, read, err
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
		err = fault.Refuse(open.TransactionID+" was begun in another working tree and must be finished there", "run the same command there")
	}
	return err
}

// Write brings every file to what Git would check out of what the change leaves.
// The report has the hashes and sizes of the change itself, not those on disk.
func (e Files) Write(ctx context.Context, c Change) Written {
	files := c.Set.Files()
	local, err := e.local(ctx, c.Base, files, true)
	if err != nil {
		return Written{Operations: failed(files, "cannot write: "+err.Error())}
	}
	ops := e.Tree.Write(local)
	for i, op := range Predict(files) {
		ops[i].BeforeHash = op.BeforeHash
		if ops[i].Status == ledger.StatusSuccess {
			ops[i] = op
		}
	}
	done := Written{Operations: ops}
	if e.Checkout == nil || slices.ContainsFunc(ops, func(op ledger.Operation) bool { return op.Status != ledger.StatusSuccess }) {
		return done
	}
	if err = e.Checkout.MoveBranch(ctx, c.Branch, c.Base, c.Commit); err != nil {
		done.Moved = &UncommittedError{Err: err}
		return done
	}
	done.Before, done.After, done.Branch = c.Base, c.Commit, c.Branch
	if err = e.Checkout.Stage(ctx, files); err != nil {
		done.Moved = &UncommittedError{err, c.Set.Paths()}
	}
	return done
}

// Found reports the files that are as the change leaves them as written.
func (e Files) Found(ctx context.Context, files []patch.Change, open ledger.ApplyStart, why string) (Written, error) {
	states, err := e.Inspect(ctx, open.BaseCommit, files)
	if err != nil {
		return Written{}, err
	}
	ops := Predict(files)
	for i, op := range failed(files, "not written: "+why) {
		if states[i] != After {
			ops[i] = op
		}
	}
	return Written{Operations: ops}, nil
}

// End drops the note of an apply.
func (e Files) End(start ledger.ApplyStart) error { return e.Tree.End(noted(start)) }

// noted is how a working tree calls an apply.
func noted(start ledger.ApplyStart) string { return start.TransactionID + "/" + start.ApplyID }
