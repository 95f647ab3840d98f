package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// refEffect builds a commit on the tip of a ref and moves the ref to it: one of
// the repository, or of the one that a pull request's head is in.
type refEffect struct {
	r    *Runner
	ref  string
	refs code.Refs
	host string // of the forge whose accounts commits are of, "" for none

	headOf int // the pull request whose head branch the ref is, which nobody makes anew; 0 for none
}

func (e *refEffect) target() string { return e.ref }

func (e *refEffect) lock(context.Context) (func(), error) { return func() {}, nil }

// base is the ref's tip; a ref that is not there yet begins where the change
// was reviewed.
func (e *refEffect) base(ctx context.Context, tx ledger.Transaction) (string, error) {
	tip, err := e.refs.Ref(ctx, e.ref)
	if err == nil && tip == "" {
		tip, err = tx.Pointers.Proposal.BaseCommit, e.gone()
	}
	return tip, err
}

// gone refuses to make the head branch of a pull request anew: whoever deleted
// it did so on purpose, and the pull request would not take it up again.
func (e *refEffect) gone() error {
	if e.headOf == 0 {
		return nil
	}
	return &NoHeadError{e.headOf, strings.TrimPrefix(e.ref, "refs/heads/")}
}

// ready builds the commit, whose tree the required checks then run on: a branch
// never moves to a tree whose checks failed.
func (e *refEffect) ready(ctx context.Context, g Gated, p *prepared) error {
	if err := e.refs.CheckRef(ctx, e.ref); err != nil {
		return err
	}
	sign, err := e.r.applySigner(g.rules.Policy)
	if err == nil {
		p.commit, err = e.r.build(ctx, g, *p, e.host, sign)
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
func (r *Runner) build(ctx context.Context, g Gated, p prepared, host string, sign func([]byte) (string, error)) (string, error) {
	commit, err := commitOf(g, host)
	if err != nil {
		return "", err
	}
	commit.Sign = sign
	return r.Refs.BuildCommit(ctx, p.base, p.set.Files(), commit)
}

// commitOf makes a commit's words from the transaction alone, so that the same
// approved transaction on the same parent is the same commit. On a forge it is
// one of the proposer's account.
func commitOf(g Gated, host string) (code.Commit, error) {
	tx := g.Transaction()
	when, err := time.Parse(ledger.TimeFormat, tx.CreatedAt)
	if err != nil {
		return code.Commit{}, fmt.Errorf("reading the transaction's time: %w", err)
	}
	subject := tx.Notes
	if subject == "" {
		subject = "Apply patch " + tx.PatchID()[:12]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nCountersign-Transaction: %s\nCountersign-Patch: %s\n", withoutCommands(ledger.OneLine(subject, 200)), tx.TransactionID, tx.PatchID())
	for _, d := range g.Verdict.Decisions {
		if d.Counted && d.Decision == ledger.Approve {
			fmt.Fprintf(&b, "Countersign-Approved-By: %s\n", withoutCommands(ledger.OneLine(d.Author.Login, 100)))
		}
	}
	c := code.Commit{Author: tx.Proposer.Login, Email: email(tx.Proposer), When: when, Message: b.String()}
	if login, address := account(tx.Proposer, host); address != "" {
		c.Author, c.Email, c.Committer = login, address, address
	}
	return c, nil
}

// account is the login of an account of a forge as its pages show it, and the
// address by which a commit is the account's without giving away another:
// ID+LOGIN@users.noreply.HOST (GitHub's documentation, "Setting your commit
// email address"). The address of what is no account there is "".
func account(a ledger.Actor, host string) (login, address string) {
	if id, err := strconv.ParseUint(a.ID, 10, 64); err != nil || id == 0 || a.Login == "" || host == "" {
		return "", ""
	}
	login = a.Login
	if a.Kind != "user" {
		login = strings.TrimSuffix(login, "[bot]") + "[bot]"
	}
	return login, ledger.OneLine(a.ID+"+"+login+"@users.noreply."+host, 200)
}

// withoutCommands takes from a proposer's words what a forge or its CI obeys in
// a commit message, such as "[skip ci]" (GitHub's documentation, "Skipping
// workflow runs"): other services have other words, all of them in brackets or
// asterisks.
func withoutCommands(words string) string {
	words = strings.NewReplacer("[", "(", "]", ")", "***", "* * *").Replace(words)
	return skipChecks().ReplaceAllString(words, "skip checks")
}

var skipChecks = lazyregexp.New(`(?i)skip-checks`)

// email is the proposer's address, where the id holds one.
func email(a ledger.Actor) string {
	if _, rest, ok := strings.Cut(a.ID, ":"); ok && strings.Contains(rest, "@") {
		return ledger.OneLine(rest, 200)
	}
	return "proposer@localhost"
}

func (e *refEffect) begin(ledger.ApplyStart) (undo func() error, err error) { return nil, nil }

// canResume: any clone can finish what it can build again.
func (e *refEffect) canResume(ledger.ApplyStart) error { return nil }

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
	if errors.Is(err, ledger.ErrMoved) { // it may have been another run of this apply
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
		if old, err = "", e.gone(); err != nil {
			return err
		}
	}
	return e.refs.MoveRef(ctx, e.ref, old, p.commit)
}

func moved(err error) error {
	if errors.Is(err, ledger.ErrMoved) {
		return ledger.ErrMoved
	}
	return nil
}

// A NoHeadError says that the head branch of a pull request is gone, or, where
// Branch is "", the repository that it was in.
type NoHeadError struct {
	PullRequest int
	Branch      string
}

func (e *NoHeadError) Error() string {
	if e.Branch != "" {
		return fmt.Sprintf("the head branch %+q of pull request %d is gone", e.Branch, e.PullRequest)
	}
	return fmt.Sprintf("the repository that the head of pull request %d was in is gone", e.PullRequest)
}
