package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/go-git/go-git/v5/plumbing"
	gogitpack "github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// A Joined is what a sync did: how many commits came, how many of ours went, of
// which Replayed were made again on the remote's tip. SetAside is where the
// clone's former ledger is kept when transactions were left out.
type Joined struct {
	Tip                     string
	Fetched, Sent, Replayed int
	LeftOut                 []string
	SetAside                string
}

// A ConflictError is transactions that were advanced differently here and on
// the remote. Nothing was changed, on either side.
type ConflictError struct {
	Remote       string
	Transactions []string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("advanced both here and on %s, differently: %s", e.Remote, strings.Join(e.Transactions, ", "))
}

// Sync makes the clone's ledger and the remote's the same: it fetches what is
// new there, makes the commits that only the clone has again on that tip, and
// pushes them. With leaveOut, transactions in conflict are left out, and the
// clone's former tip is kept under refs/agent/set-aside/; without, they are a
// *ConflictError.
func (s *Shared) Sync(ctx context.Context, leaveOut bool) (Joined, error) {
	s.thin = nil
	for attempt := 1; ; attempt++ {
		_, done, err := s.joinOnce(ctx, leaveOut)
		if !errors.Is(err, pipeline.ErrMoved) || attempt == maxJoins {
			return done, err
		}
		s.pause(ctx, attempt)
	}
}

// maxJoins bounds how often a join is tried against other writers.
const maxJoins = 50

// join is Sync for a stage that is about to read.
func (s *Shared) join(ctx context.Context) (plumbing.Hash, Joined, error) {
	done, err := s.Sync(ctx, false)
	return plumbing.NewHash(done.Tip), done, err
}

func (s *Shared) joinOnce(ctx context.Context, leaveOut bool) (plumbing.Hash, Joined, error) {
	theirs, err := s.server.Tip(ctx, s.local.ref.String())
	if err != nil {
		return theirs, Joined{}, err
	}
	ours, err := s.local.held()
	if err != nil {
		return theirs, Joined{}, err
	}
	objects := s.local.repo.objects
	if err := s.fetchWhole(ctx, theirs, ours); err != nil {
		return theirs, Joined{}, err
	}
	err = s.seen.hold(theirs, func(ancestor plumbing.Hash) (bool, error) { return descends(objects, theirs, ancestor) })
	if err != nil || theirs == ours {
		return theirs, Joined{Tip: hexOf(theirs)}, err
	}
	base, err := commonAncestor(objects, ours, theirs)
	if err != nil {
		return theirs, Joined{}, err
	}
	fetched, err := between(objects, base, theirs)
	if err != nil {
		return theirs, Joined{}, err
	}
	mine, err := between(objects, base, ours)
	if err != nil {
		return theirs, Joined{}, err
	}
	done := Joined{Fetched: len(fetched), Sent: len(mine)}
	next, batch := ours, &packfile.Batch{}
	switch {
	case len(mine) == 0:
		next = theirs
	case len(fetched) == 0:
		err = collect(objects, batch, mine)
	default:
		r := replay{objects, base, theirs, mine, s.local.sign}
		next, err = s.replay(&r, batch, &done, leaveOut)
	}
	if err == nil && next != theirs {
		err = s.push(ctx, theirs, next, batch)
	}
	if err != nil {
		return theirs, Joined{}, err
	}
	done.Tip = hexOf(next)
	done.SetAside, err = s.settle(ours, theirs, next, batch, done)
	return next, done, err
}

// replay makes what of ours the remote lacks again on its tip.
func (s *Shared) replay(r *replay, batch *packfile.Batch, done *Joined, leaveOut bool) (plumbing.Hash, error) {
	entries, conflicts, err := r.plan()
	if err == nil && len(conflicts) > 0 && !leaveOut {
		err = &ConflictError{s.server.String(), conflicts}
	}
	if err != nil {
		return r.theirs, err
	}
	done.Sent, done.Replayed, done.LeftOut = len(entries), len(entries), conflicts
	return r.run(entries, batch)
}

func hexOf(id plumbing.Hash) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// settle moves the clone's own ref after the remote has everything.
func (s *Shared) settle(ours, theirs, next plumbing.Hash, batch *packfile.Batch, done Joined) (aside string, err error) {
	var packs []notedPack
	if done.Replayed > 0 {
		pack, err := writePack(s.local.repo.objects, batch)
		if err != nil {
			return "", err
		}
		packs = append(packs, pack)
	}
	if len(done.LeftOut) > 0 {
		aside = setAside(ours)
		if err := s.local.repo.keepRef(aside, ours); err != nil {
			return "", err
		}
	}
	if err := s.seen.advance(theirs, next); err != nil {
		return aside, err
	}
	if next == ours {
		return aside, nil
	}
	return aside, s.local.move(ours, next, packs...)
}

// keepRef makes a ref that keeps a commit from being lost.
func (r *Repo) keepRef(name string, commit plumbing.Hash) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	err = r.moveRef(plumbing.ReferenceName(name), plumbing.ZeroHash, commit)
	if errors.Is(err, pipeline.ErrMoved) {
		return nil // it keeps that commit already: its name says which
	}
	return err
}

// fetchWhole gets the remote's ledger, as far as it is not here.
func (s *Shared) fetchWhole(ctx context.Context, theirs, ours plumbing.Hash) error {
	repo := s.local.repo
	if theirs.IsZero() {
		return nil
	}
	// What the clone's own ref leads to is here, all of it.
	if !ours.IsZero() {
		if ok, err := descends(repo.objects, ours, theirs); ok || err != nil {
			return err
		}
	}
	req := wire.FetchRequest{Wants: []plumbing.Hash{theirs}}
	if !ours.IsZero() {
		history, err := between(repo.objects, plumbing.ZeroHash, ours)
		if err != nil {
			return err
		}
		req.Haves = haves(history)
		pack, err := s.server.Fetch(ctx, req)
		if err != nil {
			return err
		}
		batch, err := packfile.Decode(pack, repo.objects.Read)
		if err != nil {
			return err
		}
		_, err = repo.objects.WritePack(batch)
		return err
	}
	read, write := io.Pipe()
	fetched := make(chan error, 1)
	go func() {
		err := s.server.FetchTo(ctx, req, write)
		fetched <- err
		_ = write.CloseWithError(err)
	}()
	err := gogitpack.UpdateObjectStorage(repo.git.Storer, read)
	_ = read.CloseWithError(err)
	return errors.Join(<-fetched, err)
}

// haves are the newest commits, and then ever fewer of the older: the remote
// says which of them it has.
func haves(history []link) (out []plumbing.Hash) {
	for back, step := 0, 1; back < len(history); back += step {
		out = append(out, history[len(history)-1-back].id)
		if back >= 16 {
			step *= 2
		}
	}
	return out
}

// commonAncestor returns the newest commit that both histories have; zero if
// there is none.
func commonAncestor(s source, a, b plumbing.Hash) (plumbing.Hash, error) {
	if a.IsZero() || b.IsZero() {
		return plumbing.ZeroHash, nil
	}
	theirs := map[plumbing.Hash]bool{}
	history, err := between(s, plumbing.ZeroHash, b)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	for _, l := range history {
		theirs[l.id] = true
	}
	ours, err := between(s, plumbing.ZeroHash, a)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	for i := len(ours) - 1; i >= 0; i-- {
		if theirs[ours[i].id] {
			return ours[i].id, nil
		}
	}
	return plumbing.ZeroHash, nil
}

// collect puts every object that commits brought into a batch.
func collect(s source, to *packfile.Batch, commits []link) error {
	add := func(id, base plumbing.Hash) error {
		o, err := s.Read(id)
		if err == nil {
			_, err = to.AddOn(o, base)
		}
		return err
	}
	former := plumbing.ZeroHash
	if len(commits) > 0 && !commits[0].parent.IsZero() {
		c, err := readCommit(s, commits[0].parent)
		if err != nil {
			return err
		}
		former = c.tree
	}
	for _, c := range commits {
		if err := add(c.id, plumbing.ZeroHash); err != nil {
			return err
		}
		if err := add(c.tree, former); err != nil {
			return err
		}
		err := diffTrees(s, former, c.tree, func(d treeChange) error {
			if d.new.id.IsZero() || d.new.id == d.old.id {
				return nil
			}
			return add(d.new.id, d.old.id)
		})
		if err != nil {
			return err
		}
		former = c.tree
	}
	return nil
}
