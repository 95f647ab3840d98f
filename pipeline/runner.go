// Package pipeline has the stages of a transaction from the gate on: gate, apply and
// validate; package review has the one before. A Runner puts the pure rooms together over the few interfaces
// it needs; it reads no clock, no environment and no files by itself.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Runner runs the stages of one command. What a stage returns has the ledger as
// that stage left it, not what others have made of it since. The
// fields down to Entropy are needed, but for Worktree, which is nil in a bare
// repository.
type Runner struct {
	Store    writing.Store
	Repo     code.Repository
	Refs     code.Refs
	Worktree effect.Tree
	// Rules returns the Policy as it is now; every stage asks again. base is the
	// branch that a pull request is to, whose own Policy may make it stricter, ""
	// for none.
	Rules   func(ctx context.Context, base string) (Rules, error)
	Secrets redact.Finder
	// Diffs reads a patch that is given, or kept without its secrets, in a form of Git's; nil reads none.
	Diffs Diffs
	Actor ledger.Actor // who runs this
	// Decider is whose decisions are recorded here, and zero where nobody is known
	// by more than a name that a machine made up: then none is.
	Decider ledger.Actor
	// Asked are those who are known to have started this program, and so to have asked for
	// what is proposed here, but for a pull request's own diff.
	Asked   []ledger.Requester
	Tool    string // program and version, for provenance
	Now     func() time.Time
	Entropy io.Reader

	// Pause waits before another try after the ledger has moved; attempt
	// counts from 1.
	Pause func(ctx context.Context, attempt int)
	// Sandbox is the mode that was asked for, "" for the Policy's.
	Sandbox policy.Sandbox
	// Commands runs the commands that the Policy asks for or allows; without
	// it there is Results, what came of them elsewhere, or they are refused.
	Commands checks.Commands
	Results  *checks.Results
	// Signer returns what signs with the key in a variable of the environment,
	// nil where it is not set.
	Signer func(name string) (func([]byte) (string, error), error)
	// Identities are age identities that unseal patches, "" for none.
	Identities string

	// Forge is where pull requests are read, nil for nowhere: a transaction of a
	// pull request then has no approvals. Code brings what they are made of.
	Forge forge.Reader
	Code  Code
	// Witnessed are statements that the event which started this run told, with
	// texts that the forge may not have any more; WitnessedOn is the number of the
	// pull request that they are of.
	Witnessed   []approval.Statement
	WitnessedOn int

	patches map[string][]byte         // by patch_id: what was given in this command
	offsets map[string][]patch.Offset // and which of its hunks were found elsewhere
	ran     checks.Ran                // by tree and command: what came of it in this command
}

// Known is what a command knows of a patch beside the ledger: its secrets, its
// bytes where they were given, and what its commands came to. It is a value, and
// a stage that learns more returns another one.
type Known struct {
	Secrets redact.Finder
	patches map[string][]byte
	offsets map[string][]patch.Offset
	ran     checks.Ran
}

// With returns a Runner of the same parts that knows what another stage learnt.
func (r *Runner) With(k Known) *Runner {
	copied := *r
	if k.Secrets != nil {
		copied.Secrets, copied.patches, copied.offsets, copied.ran = k.Secrets, k.patches, k.offsets, k.ran
	}
	return &copied
}

// Known is what this Runner knows.
func (r *Runner) Known() Known { return Known{r.Secrets, r.patches, r.offsets, r.ran} }

// Given adds to what is known a patch's bytes, and where its hunks were found. secrets, which
// may be nil, knows those of the patch.
func (k Known) Given(secrets redact.Finder, diff []byte, offsets []patch.Offset) Known {
	patches, found := map[string][]byte{}, map[string][]patch.Offset{}
	maps.Copy(patches, k.patches)
	maps.Copy(found, k.offsets)
	patches[canon.Hex(diff)], found[canon.Hex(diff)] = diff, offsets
	k.patches, k.offsets = patches, found
	if secrets != nil {
		k.Secrets = secrets
	}
	return k
}

// Reader reads a pull request for one stage, or for several that may take it as it
// was when the first one read it.
func (r *Runner) Reader() *forge.PullReader {
	return &forge.PullReader{Forge: r.Forge, Store: r.Store, Trees: r.Repo, Diffs: r.Code, Witnessed: r.Witnessed, WitnessedOn: r.WitnessedOn}
}

// OneLine is a text without secrets, in one line: what is cut first is not found.
func (r *Runner) OneLine(text string, limit int) string {
	return ledger.OneLine(r.Secrets.Text(text), limit)
}

// Give returns a Runner that has a patch whose transaction has it only redacted.
// Which transaction that is, its hash says; the patch goes on the commit it was
// reviewed on.
func (r *Runner) Give(ctx context.Context, snap writing.Snapshot, id string, raw []byte) (*Runner, error) {
	log, err := lookup.Read(snap.Tree, id)
	if err != nil {
		return r, err
	}
	diff, err := r.Source().Check(ctx, log.Transaction(), raw)
	if err != nil {
		return r, err
	}
	return r.With(r.Known().Given(nil, diff, nil)), nil
}

// Source is where patches are read.
func (r *Runner) Source() PatchSource {
	return PatchSource{Repo: r.Repo, Given: r.patches, Identities: r.Identities, Diffs: r.Diffs}
}

// Stage begins what one stage records.
func (r *Runner) Stage(log *ledger.Log) *writing.Stage {
	return writing.NewStage(log, r.Now(), r.Secrets)
}

// maxAttempts bounds how often a stage is evaluated again on a moved ledger.
const maxAttempts = 50

// A Try is what a stage makes of the ledger as it is: the value that it comes to,
// and the entries that it records, none where there is nothing to record. Undo
// takes back what the try has noted elsewhere, for a ledger that has moved.
type Try[T any] struct {
	Value   T
	Entries []writing.Entry
	Undo    func() error
}

// none is the value of a stage that comes to nothing but its entries.
type none struct{}

// Nothing is a Try that records nothing.
func Nothing[T any](value T, err error) (Try[T], error) { return Try[T]{Value: value}, err }

// Recording is a Try that records one entry.
func Recording[T any](value T, s *writing.Stage, title writing.Title) (Try[T], error) {
	entry, err := s.Entry(title, false)
	if err != nil {
		return Try[T]{Value: value}, err
	}
	return Try[T]{Value: value, Entries: []writing.Entry{*entry}}, nil
}

// Update runs a stage until its entries are in the ledger, and returns what it
// came to and the ledger as that leaves it. fn sees the ledger as it is, and runs
// again on the new state when somebody else was faster. paths are what fn will
// read.
func Update[T any](ctx context.Context, r *Runner, paths []string, fn func(writing.Snapshot) (Try[T], error)) (T, writing.Snapshot, error) {
	var none T
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		snap, err := r.Ledger(ctx, paths...)
		if err != nil {
			return none, snap, err
		}
		done, err := fn(snap)
		if err != nil || len(done.Entries) == 0 {
			return done.Value, snap, err
		}
		tip, err := r.Store.Append(ctx, snap.Tip, done.Entries...)
		if err == nil {
			if snap, err = r.Store.At(ctx, tip); err != nil {
				err = fmt.Errorf("reading the ledger: %w", err)
			}
			return done.Value, snap, err
		}
		if !errors.Is(err, writing.ErrMoved) {
			return done.Value, snap, fmt.Errorf("writing the ledger: %w", err)
		}
		if done.Undo != nil {
			if err := done.Undo(); err != nil {
				return none, snap, err
			}
		}
		if r.Pause != nil {
			r.Pause(ctx, attempt)
		}
		if ctx.Err() != nil {
			return none, snap, ctx.Err()
		}
	}
	return none, writing.Snapshot{}, fmt.Errorf("writing the ledger: other writers were faster %d times", maxAttempts)
}

// Code brings what pull requests are made of into the repository, and back.
type Code interface {
	forge.Diffs
	// Head fetches the head of a pull request, with all that it reaches, and
	// returns its commit.
	Head(ctx context.Context, number int) (string, error)
	// Fetch brings a ref of the base repository, with all that it reaches. It fails unless
	// the repository then has the commits and their files.
	Fetch(ctx context.Context, ref string, commits ...string) error
	// Parents are those of a commit that is here, in the order in which it has them.
	Parents(ctx context.Context, commit string) ([]string, error)
	// Drift is code.Repository's, of a commit and the head of a pull request: what
	// of them is not here is fetched.
	Drift(ctx context.Context, number int, a, head string) (commits int, files []string, err error)
	// Refs are those of the repository that a side of a pull request is in.
	Refs(ctx context.Context, s forge.Side) (code.Refs, error)
}

// Ledger returns the ledger as it is now. paths are what will be read of it, so
// that one which is elsewhere can be asked for them at once.
func (r *Runner) Ledger(ctx context.Context, paths ...string) (writing.Snapshot, error) {
	snap, err := r.Store.Snapshot(ctx, paths...)
	if err != nil {
		return writing.Snapshot{}, fmt.Errorf("reading the ledger: %w", err)
	}
	if snap.Tip != "" {
		err = writing.CheckSchema(snap.Tree) // never act on, or extend, something else
	}
	return snap, err
}

// TransactionsOn returns the transactions of a pull request, oldest first, and the ledger
// that has them.
func (r *Runner) TransactionsOn(ctx context.Context, in ledger.Repository, number int) ([]ledger.Transaction, writing.Snapshot, error) {
	snap, err := r.Ledger(ctx, ledger.PullDir(number))
	if err != nil {
		return nil, snap, err
	}
	listed, err := lookup.OnPull(snap.Tree, number)
	if err != nil || len(listed) == 0 {
		return nil, snap, err
	}
	var paths []string
	for _, l := range listed {
		paths = append(paths, Paths(l.TransactionID)...)
	}
	if snap, err = r.Ledger(ctx, paths...); err != nil {
		return nil, snap, err
	}
	all, err := lookup.StatesOnPull(snap.Tree, in, number)
	return all, snap, err
}

// Paths is what a stage reads of a ledger: the transaction's directory.
func Paths(id string) []string {
	if ledger.CheckID(id) != nil {
		return nil
	}
	return []string{ledger.Dir(id)}
}
