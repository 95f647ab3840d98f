package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/go-git/go-git/v5/plumbing"
)

// A Joined is what a sync did: how many commits came, how many of ours went, of
// which Replayed were made again on the remote's tip. Former was the clone's tip before, and
// Begins says that the remote had no ledger. SetAside is where the
// clone's former ledger is kept when transactions were left out: those in conflict, and those
// that the remote has denied, or applied as well.
type Joined struct {
	Tip, Former             string
	Begins                  bool
	Fetched, Sent, Replayed int
	LeftOut                 []string
	SetAside                string
}

// A ConflictError is transactions that were advanced here and on the remote in
// ways that contradict each other. Nothing was changed, on either side.
type ConflictError struct {
	Remote       string
	Transactions []string
	// Denied are those of them that a denial which only the clone has is about:
	// they cannot be left out.
	Denied []string
}

func (e *ConflictError) Error() string {
	text := fmt.Sprintf("advanced both here and on %s, differently: %s", e.Remote, strings.Join(e.Transactions, ", "))
	if len(e.Denied) > 0 {
		text += "; a denial that was recorded only here would be lost with " + strings.Join(e.Denied, ", ")
	}
	return text
}

func (e *ConflictError) Hint() string {
	if len(e.Denied) > 0 {
		return "deny it again in a fresh clone with --push, and sync here then"
	}
	return "countersign sync --set-aside  # keeps the remote's, and this clone's on a ref"
}

// Sync makes the clone's ledger and the remote's the same: it fetches what is
// new there, makes the commits that only the clone has again on that tip, and
// pushes them. With leaveOut, transactions in conflict are left out, and the
// clone's former tip is kept under refs/agent/set-aside/; without, they are a
// *ConflictError. Agree, if it is not nil, is told what is about to be done before anything is
// pushed or the clone's ledger moves, and its error ends it.
func (s *Shared) Sync(ctx context.Context, leaveOut bool, agree func(Joined) error) (Joined, error) {
	s.partial = nil // from here on the clone has it itself
	for attempt := 1; ; attempt++ {
		done, err := s.joinOnce(ctx, leaveOut, agree)
		if !errors.Is(err, writing.ErrMoved) || attempt == maxJoins {
			return done, err
		}
		s.pause(ctx, attempt)
	}
}

// maxJoins bounds how often a join, or a look at the tip, is tried against other
// writers.
const maxJoins = 50

func (s *Shared) joinOnce(ctx context.Context, leaveOut bool, agree func(Joined) error) (Joined, error) {
	seen, err := s.seen.read()
	if err != nil {
		return Joined{}, err
	}
	ours, theirs, held, err := s.fetchBoth(ctx, seen)
	defer held.Release()
	if err != nil || theirs == ours {
		return Joined{Tip: hexOf(theirs), Former: hexOf(ours)}, err
	}
	base, mine, fetched, err := fork(s.local.repo.objects, seen, ours, theirs)
	if err != nil {
		return Joined{}, err
	}
	done, batch := Joined{Former: hexOf(ours), Begins: theirs.IsZero(), Fetched: len(fetched), Sent: len(mine)}, s.local.repo.batch()
	next := ours
	switch {
	case len(mine) == 0:
		next = theirs
	case len(fetched) > 0:
		next, err = s.replay(&replay{source: s.local.repo.objects, base: base, theirs: theirs, mine: mine, sign: s.local.sign, pages: s.local.pages}, batch, &done, leaveOut)
	}
	if err == nil && agree != nil {
		err = agree(done)
	}
	if err == nil && next != theirs {
		var pack []byte
		if next == ours {
			pack, err = s.local.repo.pack(ctx, ours, base)
		} else {
			pack, err = batch.Encode()
		}
		if err == nil {
			err = s.push(ctx, theirs, next, pack)
		}
	}
	if err != nil {
		if len(fetched) > 0 { // a denial in it counts all the same
			err = errors.Join(err, s.local.repo.keep(s.unjoinedRef(), packfile.None, theirs))
		}
		return Joined{}, err
	}
	done.Tip = hexOf(next)
	if done.SetAside, err = s.advanceClone(ours, theirs, next, batch, done); err == nil {
		err = s.forgetUnjoined(next)
	}
	s.local.repo.mergePacks()
	return done, err
}

// unjoinedRef keeps what was fetched of this remote's ledger and not joined.
func (s *Shared) unjoinedRef() plumbing.ReferenceName {
	return plumbing.ReferenceName(s.local.unjoinedDir() + "/" + shortName(s.seen.name))
}

// forgetUnjoined has that ref, if there is one, name what the clone's ledger is from now on.
func (s *Shared) forgetUnjoined(next packfile.ID) error {
	was, err := s.local.repo.tip(s.unjoinedRef())
	if err != nil || was.IsZero() || was == next {
		return err
	}
	return s.local.repo.keep(s.unjoinedRef(), was, next)
}

// fetchBoth returns the clone's tip and the remote's, whose whole history is
// here then, both held to the memory; and the pack that came, which is held
// until a ref leads to it.
func (s *Shared) fetchBoth(ctx context.Context, seen packfile.ID) (ours, theirs packfile.ID, pack packfile.Held, err error) {
	if theirs, err = s.server.Tip(ctx, s.ref); err != nil {
		return ours, theirs, "", err
	}
	at, err := s.local.held()
	if ours = at.tip; err != nil {
		return ours, theirs, "", err
	}
	if pack, err = s.fetchWhole(ctx, theirs, ours); err != nil {
		if !unreachable(err) && s.hasMoved(ctx, theirs) {
			err = writing.ErrMoved
		}
		return ours, theirs, pack, err
	}
	// What is refused is not remembered: the memory comes last.
	back := func(ancestor packfile.ID) (bool, error) { return descends(s.local.repo.objects, theirs, ancestor) }
	check := tipCheck{back, func(from packfile.ID) error { return s.verifyWhole(from, ours, theirs) }}
	if err = s.holdKnown(ours, theirs); err == nil {
		err = s.holdDemanded(theirs, s.local.repo.objects, check)
	}
	for _, tip := range []packfile.ID{ours, theirs} {
		if err == nil {
			err = s.isLedger(tip)
		}
	}
	if err == nil && ours != s.local.passed { // it was only looked at
		_, err = s.local.hold()
	}
	if err == nil {
		err = s.seen.hold(seen, theirs, check)
	}
	if err == nil {
		s.passed = theirs
	}
	return ours, theirs, pack, err
}

// verifyWhole audits what is new to this clone. If nothing was remembered of the
// remote, that may be what is after the clone's own tip, or after what is known.
func (s *Shared) verifyWhole(from, ours, theirs packfile.ID) error {
	for _, known := range []packfile.ID{ours, s.known} {
		if !from.IsZero() || known.IsZero() {
			continue
		}
		ok, err := descends(s.local.repo.objects, theirs, known)
		if err != nil {
			return err
		}
		if ok {
			from = known
		}
	}
	return s.local.verifyNew(s.seen.name, s.local.repo.objects, from, theirs)
}

// holdKnown demands what is known from elsewhere of either history.
func (s *Shared) holdKnown(ours, theirs packfile.ID) error {
	if s.known.IsZero() {
		return nil
	}
	for _, tip := range []packfile.ID{theirs, ours} {
		if tip.IsZero() {
			continue
		}
		if ok, err := descends(s.local.repo.objects, tip, s.known); ok || err != nil {
			return err
		}
	}
	return &RollbackError{Ledger: s.seen.name, Tip: hexOf(theirs), Seen: s.known.String()}
}

// isLedger refuses to join what is no ledger, or none that is understood here.
func (s *Shared) isLedger(tip packfile.ID) error {
	if tip.IsZero() || s.local.check == nil {
		return nil
	}
	tree, err := commitTree(s.local.repo.objects, tip)
	if err != nil {
		return err
	}
	return s.local.check(tree)
}

// replay makes what of ours the remote lacks again on its tip.
func (s *Shared) replay(r *replay, batch *packfile.Batch, done *Joined, leaveOut bool) (packfile.ID, error) {
	p, err := r.plan()
	if err == nil && len(p.conflicts) > 0 && (!leaveOut || len(p.denied) > 0) {
		err = &ConflictError{s.server.String(), p.conflicts, p.denied}
	}
	if err != nil {
		return r.theirs, err
	}
	done.Sent, done.Replayed, done.LeftOut = len(p.entries), len(p.entries), slices.Concat(p.conflicts, p.overruled)
	next, err := r.run(p.entries, batch)
	if err == nil && len(p.joined) > 0 { // nothing leaves that others would refuse
		err = s.local.verifyNew(s.seen.name, overlay{batch, r.source}, r.theirs, next)
		var unverified *UnverifiedError
		if errors.As(err, &unverified) {
			err = &ConflictError{Remote: s.server.String(), Transactions: p.joined}
		}
	}
	return next, err
}

func hexOf(id packfile.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// advanceClone moves the clone's own ref after the remote has everything.
func (s *Shared) advanceClone(ours, theirs, next packfile.ID, batch *packfile.Batch, done Joined) (aside string, err error) {
	if done.Replayed > 0 {
		pack, err := packfile.Write(s.local.repo.objects.Dir, batch)
		if err != nil {
			return "", err
		}
		defer pack.Release()
	}
	if len(done.LeftOut) > 0 {
		aside = setAside(ours).String()
		if err := s.local.repo.keep(setAside(ours), packfile.None, ours); err != nil {
			return "", err
		}
	}
	s.passed = next
	if err := s.seen.advance(theirs, next); err != nil {
		return aside, err
	}
	if next == ours {
		return aside, nil
	}
	return aside, s.local.move(ours, next)
}

// fetchWhole gets the remote's ledger, as far as it is not here. The pack that
// came is held until a ref leads to it.
func (s *Shared) fetchWhole(ctx context.Context, theirs, ours packfile.ID) (held packfile.Held, err error) {
	repo := s.local.repo
	if theirs.IsZero() {
		return "", nil
	}
	if ours.IsZero() {
		return s.fetchAll(ctx, theirs)
	}
	// What the clone's own ref leads to is here, all of it.
	if ok, err := descends(repo.objects, ours, theirs); ok || err != nil {
		return "", err
	}
	have, err := haves(repo.objects, ours)
	if err != nil {
		return "", err
	}
	return fetchPack(ctx, s.server, wire.FetchRequest{Wants: []packfile.ID{theirs}, Haves: have}, repo.objects, false)
}

// fetchAll gets a whole ledger, which may be larger than memory: git writes it as it comes.
func (s *Shared) fetchAll(ctx context.Context, tip packfile.ID) (packfile.Held, error) {
	read, write := io.Pipe()
	fetched := make(chan error, 1)
	go func() {
		err := s.server.FetchTo(ctx, wire.FetchRequest{Wants: []packfile.ID{tip}}, write)
		fetched <- err
		_ = write.CloseWithError(err)
	}()
	held, err := s.local.repo.objects.Index(ctx, read)
	_ = read.CloseWithError(err)
	return held, errors.Join(<-fetched, err)
}

// haves are the newest commits of a history: the remote has one of them, or the
// two have little in common.
func haves(s source, tip packfile.ID) (out []packfile.ID, err error) {
	const most = 64
	for c, err := range ancestors(s, tip) {
		if err != nil {
			return nil, err
		}
		if out = append(out, c.id); len(out) == most {
			break
		}
	}
	return out, nil
}

// fork returns the newest commit that two histories have in common, zero if
// there is none, and what each has after it, oldest first. seen is where to
// look first.
func fork(s source, seen, a, b packfile.ID) (base packfile.ID, afterA, afterB []link, err error) {
	for _, tip := range []packfile.ID{a, b} {
		if seen.IsZero() || tip.IsZero() {
			seen = packfile.None
			break
		}
		ok, err := descends(s, tip, seen)
		if err != nil {
			return base, nil, nil, err
		}
		if !ok {
			seen = packfile.None
		}
	}
	base = seen
	if afterA, err = between(s, base, a); err == nil {
		afterB, err = between(s, base, b)
	}
	for err == nil && len(afterA) > 0 && len(afterB) > 0 && afterA[0].id == afterB[0].id {
		base, afterA, afterB = afterA[0].id, afterA[1:], afterB[1:]
	}
	return base, afterA, afterB, err
}
