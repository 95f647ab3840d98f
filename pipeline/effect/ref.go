package effect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
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
	return NoHead(fmt.Sprintf("the head branch %+q of pull request %d is gone", strings.TrimPrefix(e.Name, "refs/heads/"), e.HeadOf))
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
		if errors.Is(err, writing.ErrMoved) {
			done.Moved = writing.ErrMoved
		}
		return done
	}
	err := e.place(ctx, c)
	if errors.Is(err, writing.ErrMoved) { // it may have been another run of this apply
		err = e.place(ctx, c)
	}
	if err != nil {
		return fail(err)
	}
	tree, err := e.Repo.Tree(ctx, c.Commit)
	if err != nil {
		return fail(err)
	}
	done := Written{Operations: Predict(files), Before: c.Base, After: c.Commit}
	if e.HeadOf == 0 && strings.HasPrefix(e.Name, "refs/heads/") {
		done.Branch = e.Name
	}
	for i, f := range files {
		if got, err := patch.Lookup(tree, f.Path); err != nil || !got.Equal(f.After) {
			done.Operations[i] = failed(files[i:i+1], Mismatch)[0]
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
	ops := Predict(files)
	for i, f := range files {
		if got, err := patch.Lookup(tree, f.Path); err != nil || !got.Equal(f.After) {
			ops[i] = unwritten[i]
		}
	}
	return Written{Operations: ops, Before: open.BaseCommit, After: tip}, nil
}

// End has nothing to forget.
func (e *Ref) End(ledger.ApplyStart) error { return nil }

// A Builder makes the commits of changes.
type Builder struct {
	Refs code.Refs
	// Signer returns what signs with the key in a variable of the environment,
	// nil where it is not set.
	Signer func(name string) (func([]byte) (string, error), error)
}

// Build writes the commit that an approved change makes of its base. No ref
// points to it yet. host is the forge whose account the proposer's is, and key
// the variable that holds what it is signed with, both "" for none.
func (b Builder) Build(ctx context.Context, c Change, host, key string) (string, error) {
	sign, err := b.sign(key)
	if err != nil {
		return "", err
	}
	commit, err := commitOf(c, host)
	if err != nil {
		return "", err
	}
	commit.Sign = sign
	return b.Refs.BuildCommit(ctx, c.Base, c.Set.Files(), commit)
}

// sign is what signs with a key, nil where there is none to sign with.
func (b Builder) sign(key string) (func([]byte) (string, error), error) {
	switch {
	case key == "":
		return nil, nil
	case b.Signer != nil:
		sign, err := b.Signer(key)
		if err != nil {
			return nil, &fault.Error{Kind: fault.Refused, Message: fmt.Sprintf("signing with the key in %s: %v", key, err), Try: wantsKey, Cause: err}
		}
		if sign != nil {
			return sign, nil
		}
	}
	return nil, fault.Refuse("the Policy wants the commit signed with the key in "+key+", which is not set", wantsKey)
}

// wantsKey is what to do where the Policy wants commits signed, and they cannot be.
const wantsKey = "put an SSH key into that variable, without a passphrase or with it in COUNTERSIGN_SIGN_PASSPHRASE"

// commitOf makes a commit's words from the transaction alone, so that the same
// approved transaction on the same parent is the same commit. Its author is the one
// whom the patch names; on a forge it is the proposer's account, as forges go by authors
// where they say who may not approve, and the one whom the patch names is only said.
func commitOf(c Change, host string) (code.Commit, error) {
	tx := c.Log.Transaction()
	when, err := time.Parse(ledger.TimeFormat, tx.CreatedAt)
	if err != nil {
		return code.Commit{}, fmt.Errorf("reading the transaction's time: %w", err)
	}
	p := tx.Pointers.Proposal
	own := []string{"Countersign-Transaction: " + tx.TransactionID, "Countersign-Patch: " + tx.PatchID()}
	commit := code.Commit{Author: tx.Proposer.Login, Email: cmp.Or(localAddress(tx.Proposer), "proposer@localhost"), When: when}
	if login, address := account(tx.Proposer, host); address != "" {
		commit.Author, commit.Email, commit.Committer = login, address, address
	}
	switch by := p.Author; {
	case by != nil && host == "" && tx.PullRequest() == 0:
		own = append(own, "Countersign-Proposed-By: "+named(tx.Proposer.Login, ""))
		commit.Author, commit.Email = by.Name, by.Email
		commit.Authored, err = time.Parse(time.RFC3339, by.Date)
	case by != nil:
		own = append(own, "Countersign-Claimed-Author: "+named(by.Name, by.Email))
	}
	for _, d := range c.Verdict.Decisions {
		by := approvedBy(d.Author, host)
		if d.Counted && d.Decision == ledger.Approve && !slices.Contains(own, by) {
			own = append(own, by)
		}
	}
	commit.Message = escape.Message(subject(tx), p.Message, p.Declared, own)
	return commit, err
}

// Subject is the first line of a transaction's commit.
func Subject(tx ledger.Transaction) string { return escape.MessageLine(subject(tx)) }

func subject(tx ledger.Transaction) string {
	return ledger.OneLine(cmp.Or(tx.Notes, lookup.Does(tx), "Apply patch "+tx.PatchID()[:12]), 200)
}

// approvedBy is the trailer for an approval: the account, or the local identity, with an address that is
// its own.
func approvedBy(a ledger.Actor, host string) string {
	login, address := account(a, host)
	if address == "" {
		login, address = cmp.Or(a.Login, a.ID), localAddress(a)
	}
	return "Approved-by: " + named(login, address)
}

// named is somebody in a trailer, whose name tells of no other address.
func named(name, address string) string {
	name = ledger.OneLine(strings.NewReplacer("<", "", ">", "").Replace(name), 100)
	if address != "" && !strings.ContainsAny(address, "<> ") {
		name += " <" + address + ">"
	}
	return escape.MessageLine(name)
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

// localAddress is the address of a Git identity, "" where its id holds none.
func localAddress(a ledger.Actor) string {
	if _, rest, ok := strings.Cut(a.ID, ":"); ok && strings.Contains(rest, "@") {
		return ledger.OneLine(rest, 200)
	}
	return ""
}
