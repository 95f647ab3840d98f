package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// Where an approved change can go.
const (
	TargetWorktree = "worktree" // the checked-out files
	TargetBranch   = "branch"   // a commit on a branch that is not checked out
	TargetRef      = "ref"      // a commit on refs/agent/applied/<transaction>
)

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
	// begin notes the apply, before the ledger is told.
	begin(start ledger.ApplyStart) error
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

// effect returns the way to the place that the options name; an apply that was
// cut off is finished where it was begun.
func (r *Runner) effect(ctx context.Context, g Gated, o ApplyOptions, from *reader) (effect, error) {
	if g.Transaction().Pointers.Proposal.PullRequest > 0 && o.To != TargetWorktree {
		return r.pullEffect(ctx, g, o, from)
	}
	if open, resuming := g.log.OpenApply(); resuming && open.Target != TargetWorktree {
		return &refEffect{r: r, ref: open.Target, refs: r.Refs}, nil
	} else if resuming {
		o.To = TargetWorktree
	}
	tx := g.Transaction().TransactionID
	if o.To == "" {
		o.To = string(g.rules.Policy.Apply.To)
	}
	switch o.To {
	case "", TargetWorktree:
		if r.Worktree == nil {
			return nil, &NoWorktreeError{}
		}
		return &worktreeEffect{r}, nil
	case TargetBranch:
		if err := r.keepableBranch(o.Branch); err != nil {
			return nil, err
		}
		if o.Branch == "" {
			o.Branch = "countersign/" + tx[len(tx)-8:]
		}
		return &refEffect{r: r, ref: "refs/heads/" + o.Branch, refs: r.Refs}, nil
	case TargetRef:
		return &refEffect{r: r, ref: appliedRef(tx), refs: r.Refs}, nil
	}
	return nil, fmt.Errorf("pipeline: no target is called %q", o.To)
}

// appliedRef is where a change goes that goes to no branch.
func appliedRef(tx string) string { return "refs/agent/applied/" + tx }

// keepableBranch refuses a branch whose name is what looks like a secret.
func (r *Runner) keepableBranch(name string) error {
	found := r.Secrets.Find(name)
	if len(found) == 0 {
		return nil
	}
	at := secret.PatchFinding{Path: r.Secrets.Text(name), Kind: found[0].Kind}
	return &SecretError{[]secret.PatchFinding{at}, "a branch's name cannot be kept out of the ledger"}
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

func (e *worktreeEffect) begin(start ledger.ApplyStart) error {
	return e.r.Worktree.Begin(noted(start))
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
