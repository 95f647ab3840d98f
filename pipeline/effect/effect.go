// Package effect is the places that an approved change goes to: the files of a
// working tree, or a ref. It carries out what it is given and reads back what
// came of it; whether that was approved, and what the ledger has of it, is for
// its caller to see to.
package effect

import (
	"context"
	"runtime"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// An Effect is one place that changes go to. An apply calls it in this order:
// Lock, Base, Ready, Begin, Write, End.
type Effect interface {
	// Target is how the ledger names it: Worktree or a full ref name.
	Target() string
	// Lock keeps other applies to the same place out.
	Lock(ctx context.Context) (unlock func(), err error)
	// Base is the commit that the change goes onto now.
	Base(ctx context.Context, tx ledger.Transaction) (string, error)
	// Ready checks everything that can be checked before the intent is recorded.
	// It may build the commit that Write then puts in place, signed with the key
	// in a variable of the environment ("" for none).
	Ready(ctx context.Context, c *Change, key string) error
	// Begin notes the apply, before the ledger is told. undo, nil where there is
	// nothing to take back, is for a ledger that was not told after all.
	Begin(start ledger.ApplyStart) (undo func() error, err error)
	// CanResume reports whether an apply that was cut off is this effect's to finish.
	CanResume(open ledger.ApplyStart) error
	// Write makes the change and reads it back.
	Write(ctx context.Context, c Change) Written
	// Found reports an apply that will not be finished as what is there.
	Found(ctx context.Context, files []patch.Change, open ledger.ApplyStart, why string) (Written, error)
	// End forgets what Begin noted, after the ledger was told.
	End(start ledger.ApplyStart) error
}

// Worktree is how the ledger names the working tree as a target.
const Worktree = "worktree"

// A Change is an approved change on the commit that it is about to be applied
// to.
type Change struct {
	Log     *ledger.Log
	Verdict approval.Verdict
	Set     patch.Patchset
	Base    string
	Commit  string // the commit that was built, "" where none was needed
	Branch  string // that the commit goes to, of files that are committed
}

// Written is what an Effect did. Moved is ErrMoved when a branch was not what
// it had been, and an *UncommittedError of files that were written and not, or not wholly, committed.
type Written struct {
	Operations    []ledger.Operation
	Before, After string // commits, "" for files that are not committed
	Branch        string // in full: one of the repository that has the commit
	Moved         error
}

// failed reports every file as not written, for a reason.
func failed(files []patch.Change, why string) []ledger.Operation {
	ops := Predict(files)
	for i := range ops {
		ops[i].Status, ops[i].AfterHash, ops[i].BytesWritten, ops[i].Error = ledger.StatusError, nil, 0, why
	}
	return ops
}

// A DirtyError names files that are not as the base commit has them. New are those of them
// that it does not have at all.
type DirtyError struct{ Files, New []string }

func (e *DirtyError) Error() string {
	return ledger.Plural(len(e.Files), "file has", "files have") + " uncommitted changes: " + escape.QuoteList(e.Files)
}

// An UncommittedError says that files were written and not committed. Unstaged are those that
// were, and that the index does not have so.
type UncommittedError struct {
	Err      error
	Unstaged []string
}

func (e *UncommittedError) Error() string {
	if e.Unstaged != nil {
		return "the files are committed, and the index does not have them: " + e.Err.Error()
	}
	return "the files are written, and not committed: " + e.Err.Error()
}

// NoHead is an error that says why a pull request has no head branch to apply to.
func NoHead(why string) error {
	return fault.Refuse(why, "apply to a ref of the repository itself, with --to ref")
}

// A State is what a file on disk is, compared with a change.
type State int

// The states of a file on disk.
const (
	Other  State = iota // neither
	Before              // as the change found it
	After               // as the change leaves it
)

// A Reader returns the files of the working tree as Git would store them, nil
// where there is none. base is what the commit has there, for the mode where the
// file system does not tell.
type Reader func(name string, base *patch.File) (*patch.File, error)

// A LimitedReader is a Reader that does not read a file which Git would store as more
// than most bytes beyond base's: that is a *gitpatch.TooLargeError.
type LimitedReader func(name string, base *patch.File, most int64) (*patch.File, error)

// Predict is the report of a write in which everything goes well.
func Predict(files []patch.Change) []ledger.Operation {
	ops := make([]ledger.Operation, len(files))
	_ = parallel.Try(2*runtime.GOMAXPROCS(0), len(files), func(i int) error {
		f := files[i]
		op := ledger.Operation{
			Op: "modify", Path: f.Path, Status: ledger.StatusSuccess, BeforeHash: f.Before.Sum(), AfterHash: f.After.Sum(),
		}
		switch { // APPLY_SPEC's words: a mode change is a modify
		case f.Before == nil:
			op.Op = "create"
		case f.After == nil:
			op.Op = "delete"
		}
		if f.After != nil {
			op.BytesWritten = int64(len(f.After.Data))
		}
		ops[i] = op
		return nil
	})
	return ops
}

// Mismatch is the error of an operation whose file, read back, is not what was
// written. It is worse than one that could not be written: something else is
// there than anybody approved.
const Mismatch = "read back: the file is not what was written"
