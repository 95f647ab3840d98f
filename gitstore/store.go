package gitstore

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/sshsig"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/go-git/go-git/v5/plumbing"
)

// LedgerRef is where the ledger is unless somebody says otherwise.
const LedgerRef = "refs/agent/ledger"

// LedgerOptions are what a ledger needs beside its ref.
type LedgerOptions struct {
	// KnownTip is a commit that the ledger's tip must be or descend from, known
	// from elsewhere; "" if none is.
	KnownTip string
	// Sign signs the bytes of a commit (package sshsig); nil leaves commits
	// unsigned.
	Sign func(commit []byte) (armored string, err error)
	// Check refuses a tree that is no ledger, before it is joined with another;
	// nil refuses none.
	Check func(tree fs.FS) error
}

// Ledger is the ledger in a repository itself.
type Ledger struct {
	repo *Repo
	ref  plumbing.ReferenceName
	seen memory
	sign func([]byte) (string, error)

	check  func(fs.FS) error
	passed plumbing.Hash // the last tip that was held, or made
}

var _ pipeline.Store = (*Ledger)(nil)

// Ledger returns the ledger that ref names. The ref must lie below refs/ and
// hold two slashes, as a forge demands (GitHub docs, REST git/refs). It may be a
// branch (refs/heads/…), which a forge's rules can protect, if it is checked
// out nowhere.
func (r *Repo) Ledger(ref string, o LedgerOptions) (*Ledger, error) {
	name := plumbing.ReferenceName(ref)
	if err := name.Validate(); err != nil || !strings.HasPrefix(ref, "refs/") || strings.Count(ref, "/") < 2 {
		return nil, fmt.Errorf("%q is not a name for a ledger ref", ref)
	}
	if o.KnownTip != "" && !plumbing.IsHash(o.KnownTip) {
		return nil, fmt.Errorf("%q is not a commit id of 40 hex digits", o.KnownTip)
	}
	checkedOut, err := r.checkedOut(name)
	if err != nil {
		return nil, err
	}
	if checkedOut {
		return nil, fmt.Errorf("%q is a branch that is checked out", ref)
	}
	return &Ledger{repo: r, ref: name, seen: r.memory(ref, plumbing.NewHash(o.KnownTip)), sign: o.Sign, check: o.Check}, nil
}

// Snapshot returns the ledger as it stands. A tip that does not descend from
// the last one that was seen here is a *RollbackError.
func (l *Ledger) Snapshot(context.Context, ...string) (pipeline.Snapshot, error) {
	tip, err := l.held()
	if err != nil {
		return pipeline.Snapshot{}, err
	}
	return snapshot(l.repo.objects, tip)
}

// Seen returns the last tip that was held to the memory, or made, by this
// Ledger; "" if there was none.
func (l *Ledger) Seen() string { return hexOf(l.passed) }

// held is the tip, held to the memory. The memory is read before the ref is, so
// that it cannot be ahead of it.
func (l *Ledger) held() (plumbing.Hash, error) {
	var tip plumbing.Hash
	seen, err := l.seen.read()
	if err == nil {
		tip, err = l.repo.tip(l.ref)
	}
	if err == nil && (tip != seen || !l.seen.known.IsZero()) {
		err = l.seen.hold(seen, tip, func(ancestor plumbing.Hash) (bool, error) { return descends(l.repo.objects, tip, ancestor) })
	}
	if err == nil {
		l.passed = tip
	}
	return tip, err
}

// At returns the ledger as it was at a tip.
func (l *Ledger) At(_ context.Context, tip string) (pipeline.Snapshot, error) {
	return snapshot(l.repo.objects, plumbing.NewHash(tip))
}

func snapshot(s source, tip plumbing.Hash) (pipeline.Snapshot, error) {
	if tip.IsZero() {
		empty, err := newTreeFS(s, nil)
		return pipeline.Snapshot{Tree: empty}, err
	}
	tree, err := commitTree(s, tip)
	if err != nil {
		return pipeline.Snapshot{}, err
	}
	return pipeline.Snapshot{Tip: tip.String(), Tree: tree}, nil
}

// Append adds one commit an entry on tip. The objects are written first, as one
// pack; the ref then moves by Git's own lock protocol, so a crash leaves the
// ledger as it was.
func (l *Ledger) Append(_ context.Context, tip string, entries ...ledger.Entry) (string, error) {
	parent := plumbing.NewHash(tip)
	now, err := l.repo.tip(l.ref)
	if err != nil {
		return "", err
	}
	if now != parent {
		return "", pipeline.ErrMoved
	}
	var batch packfile.Batch
	made, err := chain(l.repo.objects, &batch, parent, entries, l.sign)
	if err != nil {
		return "", err
	}
	pack, err := writePack(l.repo.objects, &batch)
	if err != nil {
		return "", err
	}
	if err := l.move(parent, made, pack); err != nil {
		return "", err
	}
	l.repo.mergePacks()
	return made.String(), nil
}

func writePack(to *packfile.Store, batch *packfile.Batch) (notedPack, error) {
	name, err := to.WritePack(batch)
	return notedPack{name, batch.Len()}, err
}

// move makes the ref name a commit, and remembers that.
func (l *Ledger) move(old, next plumbing.Hash, packs ...notedPack) error {
	unlock, err := l.repo.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.repo.notePacks(packs...); err != nil {
		return err
	}
	if err := l.repo.moveRef(l.ref, old, next); err != nil {
		return err
	}
	l.passed = next
	return l.seen.write(next)
}

// chain makes one commit an entry, each on the one before, and returns the last.
func chain(s source, to *packfile.Batch, parent plumbing.Hash, entries []ledger.Entry, sign func([]byte) (string, error)) (plumbing.Hash, error) {
	b := builder{store: overlay{to, s}, batch: to}
	for _, e := range entries {
		next := commit{}
		if !parent.IsZero() {
			old, err := readCommit(b.store, parent)
			if err != nil {
				return plumbing.ZeroHash, err
			}
			next = commit{old.tree, []plumbing.Hash{parent}}
		}
		made, err := b.commit(next, changes(e), func(c commit) ([]byte, error) { return signed(encodeCommit(c, us, us, e.When, e.Message), sign) })
		if err != nil {
			return plumbing.ZeroHash, err
		}
		parent = made
	}
	return parent, nil
}

func changes(e ledger.Entry) []patch.Change {
	files := make([]patch.Change, 0, len(e.Files))
	for name, data := range e.Files {
		files = append(files, patch.Change{Path: name, After: &patch.File{Mode: patch.Regular, Data: data}})
	}
	slices.SortFunc(files, func(a, b patch.Change) int { return strings.Compare(a.Path, b.Path) })
	return files
}

func signed(commit []byte, sign func([]byte) (string, error)) ([]byte, error) {
	if sign == nil {
		return commit, nil
	}
	signature, err := sign(commit)
	if err != nil {
		return nil, fmt.Errorf("signing the ledger: %w", err)
	}
	return sshsig.Insert(commit, signature), nil
}

// StartAt makes the ledger's ref, which must not exist yet, name a commit.
func (l *Ledger) StartAt(tip string) error {
	return l.move(plumbing.ZeroHash, plumbing.NewHash(tip))
}
