package gitstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/gofrs/flock"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
	"github.com/countersign-dev/countersign/pipeline/writing"
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
	// Verify audits what others have added before it is remembered, and reports
	// what is wrong and whether all of it was read. With nil any commits may be in
	// the ledger.
	Verify func(h history.Reader, tip string) (found []history.Finding, complete bool, err error)
	// Pages make the pages of each commit. They are needed.
	Pages writing.Pages
}

// Ledger is the ledger in a repository itself.
type Ledger struct {
	repo *Repo
	ref  plumbing.ReferenceName
	seen memory
	sign func([]byte) (string, error)

	check  func(fs.FS) error
	verify func(history.Reader, string) ([]history.Finding, bool, error)
	pages  writing.Pages
	passed packfile.ID // the last tip that was held, or made

	unjoined map[string]packfile.ID // as the last look found them, nil before any
	made     packfile.ID            // what was appended since that look, until At is asked for it
}

var _ writing.Store = (*Ledger)(nil)

// Ledger returns the ledger that ref names. The ref must lie below refs/ and
// hold two slashes, as a forge demands (GitHub docs, REST git/refs). It may be a
// branch (refs/heads/…), which a forge's rules can protect, if it is checked
// out nowhere.
func (r *Repo) Ledger(ref string, o LedgerOptions) (*Ledger, error) {
	name := plumbing.ReferenceName(ref)
	if err := name.Validate(); err != nil || !strings.HasPrefix(ref, "refs/") || strings.Count(ref, "/") < 2 {
		return nil, fault.Refuse(fmt.Sprintf("%q is not a name for a ledger ref", ref), "a ledger ref looks like "+LedgerRef)
	}
	if o.KnownTip != "" && (!packfile.IsID(o.KnownTip) || packfile.ParseID(o.KnownTip).IsZero()) { // nothing would be held to zeros
		return nil, fault.Refuse(fmt.Sprintf("%q is not a whole commit id", o.KnownTip), "give all digits of the id")
	}
	if o.Pages == nil {
		return nil, errors.New("a ledger has pages, and nothing makes them")
	}
	if name.IsBranch() { // of another, Ledger.tip tells
		checkedOut, err := r.checkedOut(name)
		if err != nil {
			return nil, err
		}
		if checkedOut {
			return nil, errCheckedOut(name)
		}
	}
	return &Ledger{repo: r, ref: name, seen: r.memory(ref, packfile.ParseID(o.KnownTip)), sign: o.Sign, check: o.Check, verify: o.Verify, pages: o.Pages}, nil
}

func errCheckedOut(ref plumbing.ReferenceName) error {
	return fault.Refuse(fmt.Sprintf("%q is a branch that is checked out", ref), "check out another branch")
}

// A standing is what the clone's refs say of a ledger at one time.
type standing struct {
	tip      packfile.ID            // zero where there is no such ref
	unjoined map[string]packfile.ID // what the refs in unjoinedDir name
	first    bool                   // nothing was known of it
}

func (l *Ledger) stand() (at standing, err error) {
	refs, err := l.repo.refs(l.ref.String(), l.unjoinedDir())
	if err != nil {
		return at, err
	}
	own := l.repo.among(refs, l.ref)
	if err = own.err; err == nil && own.worktree != "" {
		err = errCheckedOut(l.ref)
	}
	at.tip, at.unjoined = own.id, map[string]packfile.ID{}
	for name, one := range refs {
		if strings.HasPrefix(name, l.unjoinedDir()+"/") {
			at.unjoined[name] = one.id
		}
	}
	l.unjoined, l.made = at.unjoined, packfile.None
	return at, err
}

func (l *Ledger) tip() (packfile.ID, error) {
	at, err := l.stand()
	return at.tip, err
}

// Snapshot returns the ledger as it stands. A tip that does not descend from
// the last one that was seen here is a *RollbackError, one whose commits since
// then do not verify an *UnverifiedError.
func (l *Ledger) Snapshot(_ context.Context, _ ...string) (writing.Snapshot, error) {
	at, err := l.held()
	if err != nil {
		return writing.Snapshot{}, err
	}
	return l.at(at.tip, at.unjoined)
}

// unjoinedDir has a ref for each remote whose ledger, as it was fetched, could not be
// joined with this one; it goes on to what they were joined to.
func (l *Ledger) unjoinedDir() string {
	return "refs/countersign/unjoined/" + shortName(string(l.ref))
}

// Seen returns the last tip that was held to the memory, or made, by this
// Ledger; "" if there was none.
func (l *Ledger) Seen() string { return hexOf(l.passed) }

// hold returns how the ledger stands, held to the memory. The memory is read before the ref
// is, so that it cannot be ahead of it.
func (l *Ledger) hold() (at standing, err error) {
	seen, err := l.seen.read()
	if err == nil {
		at, err = l.stand()
	}
	if err == nil && (at.tip != seen || !l.seen.known.IsZero()) {
		err = l.seen.hold(seen, at.tip, l.checkOf(at.tip))
	}
	if err == nil {
		l.passed = at.tip
	}
	at.first = seen.IsZero() && l.seen.known.IsZero()
	return at, err
}

// held is like hold, for readers: a ledger that was never seen before is returned even if it
// does not verify. Its tip is not remembered, and nothing is added to it.
func (l *Ledger) held() (standing, error) {
	at, err := l.hold()
	var unverified *UnverifiedError
	if at.first && errors.As(err, &unverified) {
		err = nil
	}
	return at, err
}

// checkOf checks a tip whose history is in the clone.
func (l *Ledger) checkOf(tip packfile.ID) tipCheck {
	objects := l.repo.objects
	return tipCheck{
		func(ancestor packfile.ID) (bool, error) { return descends(objects, tip, ancestor) },
		func(from packfile.ID) error { return l.verifyNew(l.seen.name, objects, from, tip) },
	}
}

// At returns the ledger as it was at a tip, with what is not joined with it now. Right after an Append that is what
// the look before it found: the ledger as that leaves it, and nobody's since.
func (l *Ledger) At(_ context.Context, tip string) (writing.Snapshot, error) {
	if id := l.repo.id(tip); !id.IsZero() && id == l.made && l.unjoined != nil {
		l.made = packfile.None
		return l.at(id, l.unjoined)
	}
	now, err := l.stand()
	if err != nil {
		return writing.Snapshot{}, err
	}
	return l.at(l.repo.id(tip), now.unjoined)
}

// at is At with what the refs in unjoinedDir name. What cannot be read of that is an error: it may hold a denial.
func (l *Ledger) at(tip packfile.ID, unjoined map[string]packfile.ID) (writing.Snapshot, error) {
	snap, err := snapshot(l.repo.objects, tip)
	for _, name := range slices.Sorted(maps.Keys(unjoined)) {
		tree, readErr := commitTree(l.repo.objects, unjoined[name])
		if readErr != nil {
			readErr = fmt.Errorf("reading %s, what was fetched of the ledger: %w", name, readErr)
		}
		if err = cmp.Or(err, readErr); err != nil {
			return writing.Snapshot{}, err
		}
		snap.Unjoined = append(snap.Unjoined, tree)
	}
	return snap, err
}

func snapshot(s source, tip packfile.ID) (writing.Snapshot, error) {
	if tip.IsZero() {
		empty, err := newTreeFS(s, nil)
		return writing.Snapshot{Tree: empty}, err
	}
	tree, err := commitTree(s, tip)
	if err != nil {
		return writing.Snapshot{}, err
	}
	return writing.Snapshot{Tip: tip.String(), Tree: tree}, nil
}

// Append adds one commit an entry on tip. The objects are written first, as one
// pack, which is held until the ref has moved by Git's own lock protocol: a
// crash leaves the ledger as it was, and `git gc` takes nothing away.
//
// Whether tip still is the ledger's, the move of the ref alone decides: a tip that was held here is not looked at
// again before, unless somebody may have checked it out meanwhile.
func (l *Ledger) Append(_ context.Context, tip string, entries ...writing.Entry) (string, error) {
	parent := l.repo.id(tip)
	if parent.IsZero() || parent != l.passed || l.ref.IsBranch() { // what is built on is remembered with what is built
		if held, err := l.hold(); err != nil || held.tip != parent {
			return "", cmp.Or(err, error(writing.ErrMoved))
		}
	}
	batch := l.repo.batch()
	made, err := chain(l.repo.objects, batch, parent, entries, l.pages, l.sign)
	if err != nil {
		return "", err
	}
	if err := packfile.Hold(l.repo.objects.Dir, batch, func() error { return l.move(parent, made) }); err != nil {
		return "", err
	}
	l.made = made
	l.repo.mergePacks()
	return made.String(), nil
}

// move makes the ref name a commit, and remembers that.
func (l *Ledger) move(old, next packfile.ID) error {
	unlock, err := l.repo.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if old.IsZero() {
		if checkedOut, err := l.repo.checkedOut(l.ref); checkedOut || err != nil {
			return cmp.Or(err, errCheckedOut(l.ref))
		}
	}
	if err := l.repo.moveRef(l.ref, old, next); err != nil {
		return err
	}
	l.passed = next
	return l.seen.write(next)
}

// chain makes one commit an entry, with its pages, each on the one before, and returns the last.
func chain(s source, to *packfile.Batch, parent packfile.ID, entries []writing.Entry, pages writing.Pages, sign func([]byte) (string, error)) (packfile.ID, error) {
	b := builder{store: overlay{to, s}, batch: to}
	for _, e := range entries {
		before, err := snapshot(b.store, parent)
		if err != nil {
			return packfile.None, err
		}
		next := commit{}
		if !parent.IsZero() {
			old, err := readCommit(b.store, parent)
			if err != nil {
				return packfile.None, err
			}
			next = commit{Tree: old.Tree, Parents: []packfile.ID{parent}}
		}
		made, err := b.commit(next, slices.Concat(changes(e.Files), changes(pages.Of(before.Tree, e))), func(c commit) ([]byte, error) {
			return signed(packfile.EncodeCommit(c, packfile.Us, packfile.Us, e.When, e.Message), sign)
		})
		if err != nil {
			return packfile.None, err
		}
		parent = made
	}
	return parent, nil
}

func changes(written map[string][]byte) []patch.Change {
	files := make([]patch.Change, 0, len(written))
	for name, data := range written {
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
	return signing.Insert(commit, signature), nil
}

// StartAt makes the ledger's ref, which must not exist yet, name a commit.
func (l *Ledger) StartAt(tip string) error {
	return l.move(packfile.None, l.repo.id(tip))
}

// stateDir is the program's own directory inside the Git directory that all
// working trees share.
func (r *Repo) stateDir() string { return filepath.Join(r.gitDir, "countersign") }

// lock keeps other processes of this program out until the returned function is
// called. The operating system ends it with the process, so none is ever left
// behind.
func (r *Repo) lock() (unlock func(), err error) {
	if err := os.MkdirAll(r.stateDir(), 0o777); err != nil {
		return nil, fmt.Errorf("locking the ledger: %w", err)
	}
	f := flock.New(filepath.Join(r.stateDir(), "lock"), flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o666))
	if err := f.Lock(); err != nil {
		return nil, fmt.Errorf("locking the ledger: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// shortName is a file name for what a file is about.
func shortName(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%s\n", p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// writeState replaces a file whole; it is on the disk when it has its name. One
// process at a time, which holds the lock.
func writeState(file string, data []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	tmp := file + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}
