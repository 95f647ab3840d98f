package pipeline

import (
	"context"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// Where an approved change can go.
const (
	TargetWorktree = "worktree" // the checked-out files
	TargetBranch   = "branch"   // a commit on a branch that is not checked out
	TargetRef      = "ref"      // a commit on refs/agent/applied/<transaction>
)

// ApplyOptions say where an approved change goes.
type ApplyOptions struct {
	// To is TargetWorktree, TargetBranch or TargetRef; "" is what the Policy
	// says, which is TargetWorktree where it says nothing.
	To string
	// Branch is the branch's short name for TargetBranch; "" makes one of the
	// transaction's own.
	Branch string
	// DryRun writes nothing, neither files nor ledger, and predicts the result.
	DryRun bool
	// Place waits, of many that are applied side by side, until none is at the
	// same place, nor another process; nil locks the target.
	Place func(ctx context.Context, target string) (leave func(), err error)
}

// An effect is one way to carry out an approved change.
type effect interface {
	// target is how the ledger names it: "worktree" or a full ref name.
	target() string
	// lock keeps other applies to the same place out.
	lock(ctx context.Context) (unlock func(), err error)
	// base is the commit that the change goes onto now.
	base(ctx context.Context, tx ledger.Transaction) (string, error)
	// ready checks everything that can be checked before the intent is
	// recorded, and may build what write then puts in place.
	ready(ctx context.Context, g Gated, p *prepared) error
	// begin notes the apply, before the ledger is told. undo, nil where there is
	// nothing to take back, is for a ledger that was not told after all.
	begin(start ledger.ApplyStart) (undo func() error, err error)
	// canResume reports whether an apply that was cut off is this effect's to finish.
	canResume(open ledger.ApplyStart) error
	// write makes the change and reads it back.
	write(ctx context.Context, p prepared) written
	// found reports an apply that will not be finished as what is there.
	found(ctx context.Context, files []patch.Change, open ledger.ApplyStart, why string) (written, error)
	// end forgets what begin noted, after the ledger was told.
	end(start ledger.ApplyStart) error
}

// written is what an effect did. moved is ErrMoved when a branch was not what
// it had been.
type written struct {
	ops           []result.Operation
	before, after string // commits, "" for a working tree
	moved         error
}

// prepared is an approved change on the commit that it is about to be applied
// to.
type prepared struct {
	set     patch.Patchset
	base    string
	source  result.Source
	commit  string // the commit that was built, "" where none was needed
	checked checked
	known   Known // with what the patch and its checks have taught
}

// checked is what came of all checks of a tree, and the commands that ran.
type checked struct {
	policy  string // the Policy's Sum
	tree    string
	results []checks.TestResult
	runs    []commandRun
	ran     map[string]checks.Execution // all that ran in this command, by tree and command
}

type commandRun struct {
	checks.Wanted
	execution checks.Execution
}

// worktreeEffect writes to the checked-out files.
type worktreeEffect struct{ r *Runner }

func (e *worktreeEffect) target() string { return TargetWorktree }

func (e *worktreeEffect) lock(ctx context.Context) (func(), error) { return e.r.Worktree.Lock(ctx) }

func (e *worktreeEffect) base(ctx context.Context, _ ledger.Transaction) (string, error) {
	return e.r.Repo.Head(ctx)
}

// ready checks the files on disk: each as the change found it, or, where an
// apply was cut off or the working tree is the proposal, as the change leaves
// it.
func (e *worktreeEffect) ready(ctx context.Context, g Gated, p *prepared) error {
	tx := g.Transaction()
	open, resuming := g.log.OpenApply()
	if resuming {
		if err := e.canResume(open); err != nil {
			return err
		}
	}
	if !resuming && tx.Status != ledger.Failed && tx.Pointers.Proposal.Kind != input.KindWorktree {
		sparse, err := e.r.clean(ctx, p.set.Files())
		if err == nil && len(sparse) > 0 {
			err = &SparseError{sparse}
		}
		return err
	}
	states, err := e.r.Worktree.Inspect(p.set.Files())
	if err != nil {
		return err
	}
	var dirty []string
	for i, state := range states {
		if state == workspace.Other {
			dirty = append(dirty, p.set.Files()[i].Path)
		}
	}
	if len(dirty) > 0 {
		return &DirtyError{dirty}
	}
	return nil
}

// begin keeps a note that is there already: it is of a run that was killed, whose
// apply/start may reach the ledger yet.
func (e *worktreeEffect) begin(start ledger.ApplyStart) (undo func() error, err error) {
	begun, err := e.r.Worktree.Begun()
	if err != nil || slices.Contains(begun, noted(start)) {
		return nil, err
	}
	return func() error { return e.end(start) }, e.r.Worktree.Begin(noted(start))
}

// canResume refuses to take up an apply that was begun in another working tree,
// which it has left half-written.
func (e *worktreeEffect) canResume(open ledger.ApplyStart) error {
	begun, err := e.r.Worktree.Begun()
	if err == nil && !slices.Contains(begun, noted(open)) {
		err = &ElsewhereError{ID: open.TransactionID}
	}
	return err
}

func (e *worktreeEffect) write(_ context.Context, p prepared) written {
	return written{ops: e.r.Worktree.Write(p.set.Files())}
}

func (e *worktreeEffect) found(_ context.Context, files []patch.Change, _ ledger.ApplyStart, why string) (written, error) {
	states, err := e.r.Worktree.Inspect(files)
	if err != nil {
		return written{}, err
	}
	ops := workspace.Predict(files)
	for i, op := range failedOps(files, "not written: "+why) {
		if states[i] != workspace.After {
			ops[i] = op
		}
	}
	return written{ops: ops}, nil
}

func (e *worktreeEffect) end(start ledger.ApplyStart) error {
	return e.r.Worktree.End(noted(start))
}

// noted is how a working tree calls an apply.
func noted(start ledger.ApplyStart) string { return start.TransactionID + "/" + start.ApplyID }

// failedOps reports every file as not written, for a reason.
func failedOps(files []patch.Change, why string) []result.Operation {
	ops := workspace.Predict(files)
	for i := range ops {
		ops[i].Status, ops[i].AfterHash, ops[i].BytesWritten, ops[i].Error = result.StatusError, nil, 0, why
	}
	return ops
}

// clean compares files on disk, and in the index, with the base. It returns
// those that are not checked out, which are neither clean nor dirty.
func (r *Runner) clean(ctx context.Context, files []patch.Change) (sparse []string, err error) {
	states, err := r.Worktree.Inspect(files)
	if err != nil {
		return nil, err
	}
	index, err := r.Repo.Index(ctx, files)
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
