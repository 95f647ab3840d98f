package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/rule"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// A Commit is what a commit says beside its tree.
type Commit struct {
	Author, Email string
	When          time.Time
	Message       string
	// Sign returns the armored SSH signature of a commit, always the same for
	// the same one; nil signs nothing.
	Sign func(commit []byte) (string, error)
}

// Refs makes commits and moves refs, without any working tree.
type Refs interface {
	// Ref returns the commit that a full ref name stands for, "" if there is
	// none.
	Ref(ctx context.Context, name string) (string, error)
	// BuildCommit writes the commit that changes these files of its parent, and
	// moves no ref.
	BuildCommit(ctx context.Context, parent string, files []patch.Change, c Commit) (string, error)
	// CheckRef refuses a name that is none, and a branch that is checked out
	// anywhere: its files would no longer be what HEAD says.
	CheckRef(ctx context.Context, name string) error
	// MoveRef sets a ref that CheckRef accepts to next if it still is old ("":
	// absent), else it returns ErrMoved.
	MoveRef(ctx context.Context, name, old, next string) error
}

// refEffect builds a commit on the tip of a ref and moves the ref to it: one of
// the repository, or of the one that a pull request's head is in.
type refEffect struct {
	r    *Runner
	ref  string
	refs Refs
}

func (e *refEffect) target() string { return e.ref }

func (e *refEffect) lock(context.Context) (func(), error) { return func() {}, nil }

// base is the ref's tip; a ref that is not there yet begins where the change
// was reviewed.
func (e *refEffect) base(ctx context.Context, tx ledger.Transaction) (string, error) {
	tip, err := e.refs.Ref(ctx, e.ref)
	if err == nil && tip == "" {
		tip = tx.Pointers.Proposal.BaseCommit
	}
	return tip, err
}

// ready builds the commit, whose tree the required checks then run on: a branch
// never moves to a tree whose checks failed.
func (e *refEffect) ready(ctx context.Context, g Gated, p *prepared) error {
	if err := e.refs.CheckRef(ctx, e.ref); err != nil {
		return err
	}
	sign, err := e.r.applySigner(g.rules.Policy)
	if err == nil {
		p.commit, err = e.r.build(ctx, g, *p, sign)
	}
	return err
}

// A SignerError says that the Policy wants commits signed, and that they cannot
// be.
type SignerError struct {
	Name string // of the environment variable that holds the key
	Err  error  // nil where it is not set
}

func (e *SignerError) Error() string {
	if e.Err == nil {
		return "the Policy wants the commit signed with the key in " + e.Name + ", which is not set"
	}
	return fmt.Sprintf("signing with the key in %s: %v", e.Name, e.Err)
}

func (e *SignerError) Unwrap() error { return e.Err }

// applySigner is what signs the applied commit, nil where the Policy does not
// ask for that.
func (r *Runner) applySigner(p policy.Policy) (func([]byte) (string, error), error) {
	name := p.Apply.Sign
	if name == "" {
		return nil, nil
	}
	if r.Signer == nil {
		return nil, &SignerError{Name: name}
	}
	sign, err := r.Signer(name)
	if err != nil {
		return nil, &SignerError{name, err}
	}
	if sign == nil {
		return nil, &SignerError{Name: name}
	}
	return sign, nil
}

// build writes the commit that the approved change makes of its base. No ref
// points to it yet.
func (r *Runner) build(ctx context.Context, g Gated, p prepared, sign func([]byte) (string, error)) (string, error) {
	commit, err := commitOf(g)
	if err != nil {
		return "", err
	}
	commit.Sign = sign
	return r.Refs.BuildCommit(ctx, p.base, p.set.Files(), commit)
}

// commitOf makes a commit's words from the transaction alone, so that the same
// approved transaction on the same parent is the same commit.
func commitOf(g Gated) (Commit, error) {
	tx := g.Transaction()
	when, err := time.Parse(ledger.TimeFormat, tx.CreatedAt)
	if err != nil {
		return Commit{}, fmt.Errorf("reading the transaction's time: %w", err)
	}
	subject := tx.Notes
	if subject == "" {
		subject = "Apply patch " + tx.PatchID()[:12]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nCountersign-Transaction: %s\nCountersign-Patch: %s\n", ledger.OneLine(subject, 200), tx.TransactionID, tx.PatchID())
	for _, d := range g.Verdict.Decisions {
		if d.Counted && d.Decision == ledger.Approve {
			fmt.Fprintf(&b, "Countersign-Approved-By: %s\n", ledger.OneLine(d.Author.Login, 100))
		}
	}
	return Commit{Author: tx.Proposer.Login, Email: email(tx.Proposer), When: when, Message: b.String()}, nil
}

// email is the proposer's address, where the id holds one.
func email(a ledger.Actor) string {
	if _, rest, ok := strings.Cut(a.ID, ":"); ok && strings.Contains(rest, "@") {
		return ledger.OneLine(rest, 200)
	}
	return "proposer@localhost"
}

func (e *refEffect) begin(ledger.ApplyStart) error { return nil }

// mine: any clone can finish what it can build again.
func (e *refEffect) mine(ledger.ApplyStart) error { return nil }

// found: the ref was moved, or it was not; nothing is half-done.
func (e *refEffect) found(ctx context.Context, files []patch.Change, open ledger.ApplyStart, why string) (written, error) {
	tip, err := e.refs.Ref(ctx, e.ref)
	if err != nil {
		return written{}, err
	}
	if tip == "" || tip == open.BaseCommit {
		return written{ops: failedOps(files, "not written: "+why), before: open.BaseCommit}, nil
	}
	tree, err := e.r.Repo.Tree(ctx, tip)
	if err != nil {
		return written{}, err
	}
	ops := workspace.Predict(files)
	for i, op := range failedOps(files, "not written: "+why) {
		if got, err := patch.Lookup(tree, files[i].Path); err != nil || !got.Equal(files[i].After) {
			ops[i] = op
		}
	}
	return written{ops: ops, before: open.BaseCommit, after: tip}, nil
}

func (e *refEffect) end(ledger.ApplyStart) error { return nil }

// write moves the ref by compare-and-swap and reads the files back from the
// object database. A ref that has the commit already, or one after it, is left
// alone.
func (e *refEffect) write(ctx context.Context, p prepared) written {
	done := written{before: p.base, after: p.commit}
	fail := func(err error) written {
		return written{ops: failedOps(p.set.Files(), "cannot write: "+err.Error()), before: p.base, moved: moved(err)}
	}
	err := e.place(ctx, p)
	if errors.Is(err, ErrMoved) { // it may have been another run of this apply
		err = e.place(ctx, p)
	}
	if err != nil {
		return fail(err)
	}
	tree, err := e.r.Repo.Tree(ctx, p.commit)
	if err != nil {
		return fail(err)
	}
	done.ops = workspace.Predict(p.set.Files())
	for i, f := range p.set.Files() {
		if got, err := patch.Lookup(tree, f.Path); err != nil || !got.Equal(f.After) {
			done.ops[i] = failedOps(p.set.Files()[i:i+1], workspace.Mismatch)[0]
		}
	}
	return done
}

// place moves the ref to the commit that was built, unless it has that already.
func (e *refEffect) place(ctx context.Context, p prepared) error {
	tip, err := e.refs.Ref(ctx, e.ref)
	there := tip == p.commit
	if err == nil && !there && tip != "" && tip != p.base { // others may have gone on from it since
		there, err = e.r.Repo.Descends(ctx, tip, p.commit)
	}
	if err != nil || there {
		return err
	}
	old := p.base
	if tip == "" {
		old = ""
	}
	return e.refs.MoveRef(ctx, e.ref, old, p.commit)
}

func moved(err error) error {
	if errors.Is(err, ErrMoved) {
		return ErrMoved
	}
	return nil
}

// A ChecksError says which required checks the built tree failed.
type ChecksError struct {
	ID         string
	Violations []rule.Violation
}

func (e *ChecksError) Error() string {
	return fmt.Sprintf("%s fails %s: %s", e.ID, plural(len(e.Violations), "required check", "required checks"), e.Violations[0].Message)
}
