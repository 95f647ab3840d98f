// Package pipeline has the four stages of a transaction: review, gate, apply
// and validate. A Runner puts the pure rooms together over the few interfaces
// it needs; it reads no clock, no environment and no files by itself.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"time"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// A Snapshot is the ledger at one moment. Tree stays readable and unchanged
// however the ledger moves on. Before the first entry Tip is "" and Tree empty.
type Snapshot struct {
	Tip  string
	Tree fs.FS
}

// ErrMoved is what a Store's Append returns when the ledger's tip is not the
// one given. Nothing was written.
var ErrMoved = errors.New("the ledger has moved")

// A Store keeps the ledger. Snapshot may be told which paths will be read, so
// that a ledger which is elsewhere can be asked for them at once; any other can
// be read as well. Append adds one commit an entry on exactly the given tip and
// returns the last one; when it returns an error that is not ErrMoved, the
// entries may or may not be there, and a new Snapshot tells.
//
// At returns the ledger as it was at a tip that Snapshot or Append returned.
type Store interface {
	Snapshot(ctx context.Context, paths ...string) (Snapshot, error)
	At(ctx context.Context, tip string) (Snapshot, error)
	Append(ctx context.Context, tip string, entries ...ledger.Entry) (string, error)
}

// A Repository is where the code lives. Tree must implement fs.ReadLinkFS, and
// must fail, not say "not found", where an object is missing.
type Repository interface {
	// Head returns the commit id of HEAD.
	Head(ctx context.Context) (string, error)
	Tree(ctx context.Context, commit string) (fs.FS, error)
	// TreeID returns the id of a commit's tree, which names its content.
	TreeID(ctx context.Context, commit string) (string, error)
	// Index compares the files with their index entries.
	Index(ctx context.Context, files []patch.Change) (IndexState, error)
	// Changed returns the paths whose file in the working tree is not HEAD's:
	// changed, deleted, or new and not ignored.
	Changed(ctx context.Context) ([]string, error)
	// Descends tells whether ancestor is commit or one of its ancestors; one
	// that the repository does not have is not.
	Descends(ctx context.Context, commit, ancestor string) (bool, error)
}

// An IndexState says which files differ from the commit in the index, and which
// are not checked out at all (git-sparse-checkout).
type IndexState struct{ Staged, Sparse []string }

// Claims say which applies are a working tree's to finish.
type Claims interface {
	// Begin notes that applies begin here, before the ledger is told; End that
	// they have ended, after it was. Begun are those in between, whatever crashed.
	Begin(applies ...string) error
	Begun() (applies []string, err error)
	End(applies ...string) error
}

// A Worktree is the checked-out files.
type Worktree interface {
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

// A Runner runs the stages of one command: what it shows after a stage is the
// ledger as that stage left it, not what others have made of it since. The
// fields down to Entropy are needed, but for Worktree, which is nil in a bare
// repository.
type Runner struct {
	Store    Store
	Repo     Repository
	Refs     Refs
	Worktree Worktree
	// Rules returns the Policy as it is now; every stage asks again. base is the
	// branch that a pull request is to, whose own Policy may make it stricter, ""
	// for none.
	Rules   func(ctx context.Context, base string) (Rules, error)
	Secrets *secret.Finder
	Actor   ledger.Actor // who runs this
	Tool    string       // program and version, for provenance
	Now     func() time.Time
	Entropy io.Reader

	// Turn waits until no transaction that is taken further beside this one, in
	// the same process, is at the same place: a target, and of the working tree
	// the transaction's files. It is nil where there is only one.
	Turn func(ctx context.Context, target string) (done func(), err error)

	// Pause waits before another try after the ledger has moved; attempt
	// counts from 1.
	Pause func(ctx context.Context, attempt int)
	// Sandbox is the mode that was asked for, "" for the Policy's.
	Sandbox policy.Sandbox
	// Commands runs the commands that the Policy asks for or allows; without
	// it there is Results, what came of them elsewhere, or they are refused.
	Commands Commands
	Results  *checks.Results
	// Signer returns what signs with the key in a variable of the environment,
	// nil where it is not set.
	Signer func(name string) (func([]byte) (string, error), error)
	// Identities are age identities that unseal patches, "" for none.
	Identities string

	// Forge is where pull requests are read, nil for nowhere: a transaction of a
	// pull request then has no approvals. Code brings what they are made of.
	Forge Forge
	Code  Code
	// Witnessed are statements that the event which started this run told, with
	// texts that the forge may not have any more; WitnessedOn is the number of the
	// pull request that they are of.
	Witnessed   []approval.Statement
	WitnessedOn int

	reading *reading // what this stage, or the last, read of a pull request
	asks    bool     // whether the stage may ask the forge

	tip     *string                     // what the last stage saw, or left
	patches map[string][]byte           // by patch_id: what was given in this command
	ran     map[string]checks.Execution // by tree and command: what came of it in this command
}

// Fork returns a Runner of the same parts that has seen nothing yet, for another
// transaction beside this one's.
func (r *Runner) Fork() *Runner {
	fork := *r
	fork.reading, fork.asks, fork.tip = nil, false, nil
	fork.patches, fork.ran = maps.Clone(r.patches), nil
	return &fork
}

// stage begins what one stage records.
func (r *Runner) stage(log *ledger.Log) *ledger.Stage {
	return ledger.NewStage(log, r.Now(), r.Secrets)
}

// maxAttempts bounds how often a stage is evaluated again on a moved ledger.
const maxAttempts = 50

// update runs a stage until its entry is in the ledger. fn sees the ledger as
// it is, and runs again on the new state when somebody else was faster; a nil
// entry means that there is nothing to record. paths are what fn will read.
func (r *Runner) update(ctx context.Context, paths []string, fn func(Snapshot) (*ledger.Entry, error)) (string, error) {
	return r.updateAll(ctx, paths, func(snap Snapshot) ([]ledger.Entry, error) {
		entry, err := fn(snap)
		if err != nil || entry == nil {
			return nil, err
		}
		return []ledger.Entry{*entry}, nil
	})
}

// updateAll is update for a stage of several entries, which come into the ledger
// together.
func (r *Runner) updateAll(ctx context.Context, paths []string, fn func(Snapshot) ([]ledger.Entry, error)) (string, error) {
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		snap, err := r.snapshot(ctx, paths...)
		if err != nil {
			return "", err
		}
		entries, err := fn(snap)
		if err != nil || len(entries) == 0 {
			return snap.Tip, err
		}
		tip, err := r.Store.Append(ctx, snap.Tip, entries...)
		if err == nil {
			r.tip = &tip
			return tip, nil
		}
		if !errors.Is(err, ErrMoved) {
			return "", fmt.Errorf("writing the ledger: %w", err)
		}
		if r.Pause != nil {
			r.Pause(ctx, attempt)
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return "", fmt.Errorf("writing the ledger: other writers were faster %d times", maxAttempts)
}
