package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Shared is a ledger on a remote repository. Where the clone has the ledger's
// ref, that is kept level with the remote's; else only what is needed of the
// remote's tip is here (docs/ledger.md).
//
// An append is done when the remote says so. Shared is for one goroutine.
type Shared struct {
	local   *Ledger
	server  *wire.Server
	ref     string       // there
	seen    memory       // of the remote
	partial *partialCopy // nil where the clone has the ledger itself
	known   packfile.ID
	demand  []writing.Tip // of the remote's history alone
	passed  packfile.ID   // the last tip that was held, or made
	// pause waits before the same push is tried again; attempt counts from 1.
	pause func(ctx context.Context, attempt int)
}

var _ writing.Store = (*Shared)(nil)

// maxPushes bounds how often one push is tried.
const maxPushes = 5

// A Place is where the ledger of a remote repository is kept: on the ref Ref of a server's
// repository, which may be another one. Of is the remote repository; it, and not the place, names
// the memory, so that a ledger which is kept elsewhere from now on is held to what was seen before.
type Place struct {
	Server *wire.Server
	Ref    string
	Of     wire.Remote
}

// Elsewhere reports whether it is in another repository than the one whose ledger it is.
func (p Place) Elsewhere() bool { return p.Server.String() != p.Of.String() }

// Share connects a clone's ledger with that of a remote repository.
// pause waits between two tries of one push.
func (l *Ledger) Share(at Place, pause func(ctx context.Context, attempt int)) (*Shared, error) {
	if _, err := refName(at.Ref); err != nil {
		return nil, err
	}
	server := at.Server
	seen := l.repo.memory(fmt.Sprintf("%s of %s", l.ref, at.Of), packfile.None)
	if at.Elsewhere() {
		seen.at = server.String()
	}
	// What is known from elsewhere may be in the remote's history, or in what
	// the clone has not pushed yet: it is not demanded of each.
	known := l.seen.known
	l.seen.known = packfile.None
	s := &Shared{local: l, server: server, ref: at.Ref, seen: seen, known: known, pause: pause}
	tip, err := l.tip()
	if err == nil && tip.IsZero() {
		s.partial, err = openPartial(s.partialDir(), server)
	}
	return s, err
}

// String is the URL of the remote repository without user and password.
func (s *Shared) String() string { return s.server.String() }

// partialDir is where what is needed of this ledger is kept.
func (s *Shared) partialDir() string {
	return filepath.Join(s.local.repo.stateDir(), "ledgers", shortName(fmt.Sprintf("%s of %s", s.ref, s.server)))
}

// PushedTo is the address of the repository that was at a tip of this clone's ledger when
// the remote's ledger was last asked for; "" if it was at another. It asks nobody.
func (l *Ledger) PushedTo(address, tip string) string {
	if doc := l.rememberedOf(address); tip != "" && doc.Tip == tip {
		return cmp.Or(doc.At, address)
	}
	return ""
}

// KeptElsewhere reports whether the remote's ledger was in another repository when it was last asked for. It asks nobody.
func (l *Ledger) KeptElsewhere(address string) bool { return l.rememberedOf(address).At != "" }

// rememberedOf is what is remembered of the ledger of the remote with an address, nothing if that cannot be told.
func (l *Ledger) rememberedOf(address string) remembered {
	remote, err := wire.ParseRemote(address, "")
	if err != nil {
		return remembered{}
	}
	doc, err := l.repo.memory(fmt.Sprintf("%s of %s", l.ref, remote), packfile.None).document()
	if err != nil {
		return remembered{}
	}
	return doc
}

// PushedTo is the address of the repository that has had a tip of this ledger, as it has every one.
func (s *Shared) PushedTo(address, tip string) string {
	if tip == "" {
		return ""
	}
	return cmp.Or(s.seen.at, address)
}

// Demand makes every later reading refuse a remote ledger that is not, or does
// not descend from, each of these tips, or whose commits since the last of them do
// not verify. What was read before may have been another ledger: Seen begins anew.
func (s *Shared) Demand(tips ...writing.Tip) error {
	for _, t := range tips {
		if !packfile.IsID(t.Commit) {
			return fmt.Errorf("%s names %q, which is not a whole commit id", t.Source, t.Commit)
		}
	}
	s.demand, s.passed = append(s.demand, tips...), packfile.None
	return nil
}

// holdDemanded holds a tip of the remote's to what is demanded of it. To descend is
// not enough, as a commit on top can have a tree that has lost what came before: what
// is after the last tip that is known has to verify, whatever this clone had
// remembered before that tip was demanded.
func (s *Shared) holdDemanded(tip packfile.ID, objects source, c tipCheck) error {
	if len(s.demand) == 0 {
		return nil
	}
	known := map[packfile.ID]bool{}
	for _, t := range s.demand {
		must := packfile.ParseID(t.Commit)
		err := lineage.Held(s.seen.name, tip, must, c.descends)
		var rollback *RollbackError
		if errors.As(err, &rollback) {
			rollback.Source = t.Source
		}
		if err != nil {
			return err
		}
		known[must] = true
	}
	if s.passed == tip {
		return nil
	}
	from := s.passed
	for at := tip; from.IsZero(); {
		if known[at] {
			from = at
			break
		}
		commit, err := readCommit(objects, at)
		if err != nil {
			return err
		}
		if len(commit.Parents) != 1 { // no ledger has such a commit: the audit says so
			from = packfile.ParseID(s.demand[0].Commit)
			break
		}
		at = commit.Parents[0]
	}
	if from == tip {
		return nil
	}
	return c.verify(from)
}

// Snapshot returns the remote ledger as it stands.
func (s *Shared) Snapshot(ctx context.Context, paths ...string) (writing.Snapshot, error) {
	if s.partial == nil {
		done, err := s.Sync(ctx, false, nil)
		if err != nil {
			return writing.Snapshot{}, err
		}
		if done.Sent == 0 && done.Fetched == 0 { // nothing here has changed since the join looked
			return s.local.at(s.local.repo.id(done.Tip), s.local.unjoined)
		}
		return s.local.At(ctx, done.Tip)
	}
	s.partial.ctx = ctx
	tip, err := s.fetchTip(ctx)
	if err != nil || tip.IsZero() {
		empty, _ := newTreeFS(s.partial, nil)
		return writing.Snapshot{Tree: empty}, err
	}
	c, err := readCommit(s.partial, tip)
	if err == nil {
		err = s.partial.prefetch(c.Tree, paths)
	}
	if err != nil {
		return writing.Snapshot{}, err
	}
	return snapshot(s.partial, tip)
}

// At returns the ledger as it was at a tip.
func (s *Shared) At(ctx context.Context, tip string) (writing.Snapshot, error) {
	if s.partial == nil {
		return s.local.At(ctx, tip)
	}
	s.partial.ctx = ctx
	return snapshot(s.partial, s.local.repo.id(tip))
}

// Seen returns the last tip that was held to the memory, or made, by this
// Shared; "" if there was none.
func (s *Shared) Seen() string { return hexOf(s.passed) }

// fetchTip asks for the tip, and holds it to the memory. Many servers give only
// what a ref names: where the ledger has moved on before all was fetched that this
// takes, the new tip is asked for.
func (s *Shared) fetchTip(ctx context.Context) (tip packfile.ID, err error) {
	for attempt := 1; attempt <= maxJoins; attempt++ {
		tip, err = s.holdTip(ctx)
		if err == nil {
			s.passed = tip
			return tip, nil
		}
		if tip.IsZero() || !s.hasMoved(ctx, tip) {
			break // or the server cannot be asked
		}
		s.pause(ctx, attempt)
	}
	return tip, err
}

// hasMoved reports whether tip is the remote's no more.
func (s *Shared) hasMoved(ctx context.Context, tip packfile.ID) bool {
	now, err := s.server.Tip(ctx, s.ref)
	return err == nil && now != tip
}

// holdTip is one try of fetchTip.
func (s *Shared) holdTip(ctx context.Context) (packfile.ID, error) {
	seen, err := s.seen.read()
	if err != nil {
		return packfile.None, err
	}
	tip, err := s.server.Tip(ctx, s.ref)
	if err == nil && !tip.IsZero() {
		err = s.partial.fetchTip(tip, seen)
	}
	back := func(ancestor packfile.ID) (bool, error) { return s.descends(tip, ancestor) }
	if err == nil {
		err = lineage.Held(s.seen.name, tip, s.known, back)
	}
	check := tipCheck{back, func(from packfile.ID) error { return s.verifyPartial(from, tip) }}
	if err == nil {
		err = s.holdDemanded(tip, s.partial.own, check)
	}
	if err == nil {
		err = s.seen.hold(seen, tip, check)
	}
	return tip, err
}

// verifyPartial gets all that the commits after one brought, and audits it. Where
// nothing was known before, that would be the whole ledger: the first tip is
// taken as it is.
func (s *Shared) verifyPartial(from, tip packfile.ID) error {
	if from.IsZero() {
		from = s.known
	}
	if from.IsZero() || from == tip || s.local.verify == nil {
		return nil
	}
	links, err := between(s.partial.own, from, tip)
	if err != nil || s.server.CanFilter() || !s.partial.isWhole(tip) { // else fetchTip has brought all
		if err := s.partial.fetch(wire.FetchRequest{Wants: []packfile.ID{tip}, Haves: []packfile.ID{from}, Shallow: []packfile.ID{from}}); err != nil {
			return err
		}
		links, err = between(s.partial.own, from, tip)
	}
	// The new commits are compared with from, which is not here any more where the
	// cache has begun anew. What is no line of commits is the audit's to refuse.
	if err == nil && (s.server.CanFilter() || !s.partial.isWhole(from)) {
		s.partial.depth, s.partial.whole = len(links)+1, false
	}
	return s.local.verifyNew(s.seen.name, s.partial, from, tip)
}

// descends asks for as much history as it takes.
func (s *Shared) descends(tip, ancestor packfile.ID) (bool, error) {
	if ok, err := descends(s.partial.own, tip, ancestor); ok || err == nil {
		return ok, err
	}
	if err := s.partial.fetchHistory(tip, ancestor); err != nil {
		return false, err
	}
	return descends(s.partial.own, tip, ancestor)
}

// Append adds one commit an entry on tip, here and on the remote: one request
// with exactly the new objects, whose old hash is the lease.
func (s *Shared) Append(ctx context.Context, tip string, entries ...writing.Entry) (string, error) {
	var objects source = s.local.repo.objects
	own := s.local.repo.objects
	if s.partial != nil {
		s.partial.ctx = ctx
		objects, own = s.partial, s.partial.own
	}
	parent := s.local.repo.id(tip)
	if _, _, err := own.Size(parent); !parent.IsZero() && errors.Is(err, packfile.ErrMissing) {
		return "", writing.ErrMoved // no tip that was ever seen here
	}
	if s.partial != nil && !parent.IsZero() {
		c, err := readCommit(s.partial, parent)
		if err == nil {
			err = s.partial.prefetchRows(c.Tree, s.local.pages, entries)
		}
		if err != nil {
			return "", err
		}
	}
	batch := s.local.repo.batch()
	made, err := chain(objects, batch, parent, entries, s.local.pages, s.local.sign)
	if err != nil {
		return "", err
	}
	sent, err := batch.Encode()
	if err == nil {
		err = s.push(ctx, parent, made, sent)
	}
	if err != nil {
		return "", err
	}
	pack, err := packfile.Write(own.Dir, batch)
	if err != nil {
		return "", err
	}
	defer pack.Release()
	s.passed = made
	if err := s.seen.advance(parent, made); err != nil {
		return "", err
	}
	if s.partial != nil {
		if parent.IsZero() || s.partial.isWhole(parent) {
			_ = s.partial.noteWhole(made) // else it is fetched again
		}
		return made.String(), nil
	}
	// The remote has it. Should another process have moved the ref here, the
	// next join finds that.
	if err := s.local.move(parent, made); err == nil {
		s.local.made = made
	} else if !errors.Is(err, writing.ErrMoved) {
		return "", err
	}
	s.local.repo.mergePacks()
	return made.String(), nil
}

// push sends the objects; one that somebody else overtook may be done all the same.
func (s *Shared) push(ctx context.Context, old, next packfile.ID, pack []byte) error {
	err := push(ctx, s.server, s.ref, old, next, pack, maxPushes, s.pause)
	if errors.Is(err, writing.ErrMoved) {
		return s.overtaken(ctx, old, next)
	}
	return explained(err)
}

// push sends objects and moves a ref. Whatever goes wrong, what the ref says
// afterwards decides: next, and it is done; old, and the same bytes are sent again;
// anything else is ErrMoved, though next may be below it. What the server refuses
// is sent no more than refusals times: another push may have held the ref.
func push(ctx context.Context, server *wire.Server, ref string, old, next packfile.ID, pack []byte, refusals int, pause func(context.Context, int)) error {
	for attempt := 1; ; attempt++ {
		pushed := server.Push(ctx, ref, old, next, pack)
		if pushed == nil {
			return nil
		}
		var rejected *wire.RejectedError
		var refused *wire.AuthError
		tip, err := server.Tip(ctx, ref)
		switch {
		case err == nil && tip == next:
			return nil
		case err == nil && tip != old:
			return writing.ErrMoved
		case errors.As(pushed, &refused), errors.As(pushed, &rejected) && attempt >= refusals, attempt == maxPushes, ctx.Err() != nil:
			return pushed
		}
		if pause != nil {
			pause(ctx, attempt)
		}
	}
}

// explained adds what the server says to the person who pushes.
func explained(err error) error {
	var e *wire.Error
	if errors.As(err, &e) && e.Message != "" {
		return fmt.Errorf("%w (the server says: %s)", err, ledger.OneLine(e.Message, 500))
	}
	return err
}

// overtaken: somebody else has moved the ref, before us or after us. Over ssh a
// tip that has moved again cannot be asked for, so that is tried a few times.
func (s *Shared) overtaken(ctx context.Context, old, ours packfile.ID) error {
	t := s.partial
	if t == nil {
		var err error
		if t, err = openPartial(s.partialDir(), s.server); err != nil {
			return err
		}
	}
	t.ctx = ctx
	for attempt := 1; ; attempt++ {
		tip, err := s.server.Tip(ctx, s.ref)
		if err == nil && tip.IsZero() {
			return writing.ErrMoved // the next snapshot says what that means
		}
		if err == nil {
			err = t.fetchHistory(tip, ours, old)
		}
		if err == nil {
			if ok, err := descends(t.own, tip, ours); ok && err == nil {
				return nil
			}
			return writing.ErrMoved
		}
		if attempt == maxJoins || !s.hasMoved(ctx, tip) && (unreachable(err) || attempt >= maxPushes) {
			return err
		}
		s.pause(ctx, attempt)
	}
}
