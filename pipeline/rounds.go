package pipeline

import (
	"context"
	"errors"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// fresh is how long what was judged waits for others. An approval may end, or a
// denial be said, while somebody else's commands run.
var fresh = 2 * time.Second

// rounds take transactions further side by side. A participant that needs what all
// share, the ledger, the working tree or its turn at a place, asks for it and
// waits; once nobody works any more the round is closed: what was asked for is
// done in one go, and all go on.
//
// One goroutine, in run, has all of this to itself. Members read snap, which
// changes only while nobody works, and send events to change anything else.
type rounds struct {
	runner *Runner
	store  sync.Mutex  // held by the participant that reads the ledger as it was
	events chan func() // what run is to do

	all     []*participant // the oldest first
	ready   []*participant // to begin, or to go on
	free    int            // how many more may work at the same time
	live    int            // how many have not ended
	working int            // how many use what all share, or may
	away    int            // how many are busy with something that nobody shares

	snap    writing.Snapshot // the ledger as this round sees it
	paths   []string         // what all participants read of it
	moves   int              // how often the ledger has moved in a row
	overdue <-chan time.Time // when what was judged has waited for fresh, nil while nothing has
	places  places
	tree    treeLock
}

// runRounds goes on until all participants have ended. A round is closed when nobody works,
// and either nobody is away or something is overdue, for which those who could go
// on are kept back.
func (b *rounds) run(ctx context.Context) {
	b.ready, b.live = slices.Clone(b.all), len(b.all)
	hurry, asked := false, false // whether something is overdue, and happened since the last round
	for b.live > 0 {
		switch {
		case len(b.ready) > 0 && b.free > 0 && !hurry:
			m := b.ready[0]
			b.ready = b.ready[1:]
			b.free--
			b.working++
			m.goOn <- struct{}{}
			continue
		case b.working == 0 && asked && (b.away == 0 || hurry):
			b.close(ctx)
			hurry, asked = false, false
			continue
		case b.working == 0 && b.away == 0:
			panic("batch: transactions that wait for each other")
		}
		select {
		case event := <-b.events:
			event()
		case <-b.overdue:
			b.overdue, hurry = nil, true
		}
		asked = true
	}
}

// A participant is one transaction of those that are taken further together.
type participant struct {
	*rounds
	index int // the oldest is 0
	patch string
	files []string

	goOn  chan struct{}
	asks  any      // an *appending, a *filesWrite or a *turn that it waits for
	over  bool     // it has had its turn, or takes none
	begun []string // applies to be noted before the ledger is told
	ended []string // applies to be forgotten, some time after that
}

// ask waits for the end of a round that has done what is asked for.
func (m *participant) ask(request any) {
	m.events <- func() {
		m.asks = request
		m.working--
		m.free++
		if _, waits := request.(*turn); !waits && m.overdue == nil {
			m.overdue = time.After(fresh)
		}
	}
	<-m.goOn
}

// served lets a participant go on that has what it asked for.
func (m *participant) served() {
	m.asks = nil
	m.ready = append(m.ready, m)
}

// What participants ask of a round.
type (
	// An appending is entries for the ledger, made on the tip of the round.
	appending struct {
		entries []writing.Entry
		made    string
		err     error
	}
	// A filesWrite is files for the working tree.
	filesWrite struct {
		files []patch.Change
		ops   []ledger.Operation
	}
	// A turn is a time at a place: a ref, or the participant's files of the working tree.
	turn struct {
		target string // "" for the working tree
		err    error
	}
)

// asking are the participants that wait for one kind of request.
func asking[T any](b *rounds) iter.Seq2[*participant, T] {
	return func(yield func(*participant, T) bool) {
		for _, m := range b.all {
			if request, ok := m.asks.(T); ok && !yield(m, request) {
				return
			}
		}
	}
}

// close does what participants wait for.
func (b *rounds) close(ctx context.Context) {
	b.overdue = nil
	b.write()
	b.append(ctx)
	b.giveTurns(ctx)
}

// write writes the files of all as one write. Where that fails each is written
// alone: those that are done are found to be, and the others have their own
// error.
func (b *rounds) write() {
	var files []patch.Change
	all := 0
	for _, w := range asking[*filesWrite](b) {
		files = append(files, w.files...)
		all++
	}
	var ops []ledger.Operation
	if len(files) > 0 {
		ops = b.runner.Worktree.Write(files)
	}
	for m, w := range asking[*filesWrite](b) {
		w.ops, ops = ops[:len(w.files):len(w.files)], ops[len(w.files):]
		if all > 1 && unfinished(w.ops) {
			w.ops = b.runner.Worktree.Write(w.files)
		}
		m.served()
	}
}

// unfinished reports whether a write may do better alone. One that read back
// something else than it wrote has its answer.
func unfinished(ops []ledger.Operation) bool {
	return slices.ContainsFunc(ops, func(o ledger.Operation) bool { return o.Status != ledger.StatusSuccess }) &&
		!slices.ContainsFunc(ops, func(o ledger.Operation) bool { return o.Error == effect.Mismatch })
}

// append writes what fits together, and sends the others to look again. Where the
// ledger cannot be read then, nobody whose entries are not in it can go on.
func (b *rounds) append(ctx context.Context) {
	chosen, entries := b.together()
	if len(chosen) == 0 {
		return
	}
	made, err := "", b.note(chosen)
	if err == nil {
		made, err = b.runner.Store.Append(ctx, b.snap.Tip, entries...)
	}
	b.moves++
	if !errors.Is(err, writing.ErrMoved) {
		b.moves = 0
	} else if b.runner.Pause != nil {
		b.runner.Pause(ctx, b.moves)
	}
	var unread error
	if err != nil {
		unread = b.refresh(ctx)
	} else if snap, err := b.runner.Store.At(ctx, made); err == nil {
		b.snap = snap
	} else {
		unread = err
	}
	for m, a := range asking[*appending](b) {
		if a.err = writing.ErrMoved; slices.Contains(chosen, m) {
			a.made, a.err = made, err
		}
		if a.err != nil && unread != nil {
			a.err = unread
		}
		m.served()
	}
}

// together are the entries that may be appended as one chain, and whose they are:
// none was judged without something that one before it changes.
func (b *rounds) together() (chosen []*participant, entries []writing.Entry) {
	denied := map[string]bool{} // patches of which a denial is written
	for m, a := range asking[*appending](b) {
		if denied[m.patch] {
			continue
		}
		chosen, entries = append(chosen, m), append(entries, a.entries...)
		for _, e := range a.entries {
			patches, elsewhere := outside(e)
			if elsewhere {
				return chosen, entries
			}
			for _, patch := range patches {
				denied[patch] = true
			}
		}
	}
	return chosen, entries
}

// outside tells what an entry writes that is not of its transaction alone: the
// patches whose denials it adds to, and whether there is anything else.
func outside(e writing.Entry) (denied []string, elsewhere bool) {
	for name := range e.Files {
		patch := path.Base(path.Dir(name))
		switch {
		case strings.HasPrefix(name, ledger.TransactionsDir+"/"):
		case path.Dir(name) == ledger.DeniedDir(patch):
			denied = append(denied, patch)
		default:
			elsewhere = true
		}
	}
	return denied, elsewhere
}

// note notes the applies that are about to be begun, so that a crash is taken up
// where it was.
func (b *rounds) note(all []*participant) error {
	var begun []string
	for _, m := range all {
		begun = append(begun, m.begun...)
	}
	if len(begun) == 0 {
		return nil
	}
	if err := b.forget(); err != nil {
		return err
	}
	if err := b.runner.Worktree.Begin(begun...); err != nil {
		return err
	}
	for _, m := range all {
		m.begun = nil
	}
	return nil
}

// forget is note for applies that have ended.
func (b *rounds) forget() error {
	var ended []string
	for _, m := range b.all {
		ended = append(ended, m.ended...)
	}
	if len(ended) == 0 {
		return nil
	}
	if err := b.runner.Worktree.End(ended...); err != nil {
		return err
	}
	for _, m := range b.all {
		m.ended = nil
	}
	return nil
}

// refresh sees the ledger as it is now.
func (b *rounds) refresh(ctx context.Context) error {
	snap, err := b.runner.Store.Snapshot(ctx, b.paths...)
	if err == nil && (snap.Tip != b.snap.Tip || b.snap.Tree == nil) {
		b.snap = snap
	}
	return err
}

// treeLock keeps other processes out of the working tree while participants apply.
type treeLock struct {
	unlock  func() // nil while it is not locked
	waiting bool   // for another process
	users   int
}

// giveTurns gives participants their turn, the oldest transaction first: nobody goes
// before an older one that has not had its turn and touches one of its files, so
// that the outcome does not depend on who was faster. Another process may have
// been at the place: they see the ledger as it is now.
func (b *rounds) giveTurns(ctx context.Context) {
	var given []*participant
	var turns []*turn
	var older places
	for _, m := range b.all {
		t, asks := m.asks.(*turn)
		free := asks && b.places.free(t.target, m.files) && older.free("", m.files)
		switch {
		case m.over:
		case free && (t.target != "" || b.tree.unlock != nil):
			b.places.take(t.target, m.files, 1)
			if t.target == "" {
				b.tree.users++
			}
			m.over = true
			given, turns = append(given, m), append(turns, t)
		default:
			if free {
				b.lock(ctx)
			}
			older.take("", m.files, 1)
		}
	}
	if len(given) == 0 {
		return
	}
	err := b.refresh(ctx)
	for i, m := range given {
		if turns[i].err = err; err != nil {
			m.leave(turns[i])
		}
		m.served()
	}
}

// lock begins to wait for other processes that use the working tree.
func (b *rounds) lock(ctx context.Context) {
	if b.tree.waiting {
		return
	}
	b.tree.waiting = true
	b.away++
	go func() {
		unlock, err := b.runner.Worktree.Lock(ctx)
		b.events <- func() {
			b.tree.waiting, b.tree.unlock = false, unlock
			b.away--
			for m, t := range asking[*turn](b) {
				if err != nil && t.target == "" {
					t.err, m.over = err, true
					m.served()
				}
			}
		}
	}()
}

// leave ends a participant's turn. The working tree is unlocked after the last one.
func (m *participant) leave(t *turn) {
	m.places.take(t.target, m.files, -1)
	if t.target != "" {
		return
	}
	m.tree.users--
	for other, t := range asking[*turn](m.rounds) {
		if t.target == "" && other != m {
			return
		}
	}
	if m.tree.users == 0 {
		_ = m.forget() // a note that is left names an apply that has ended
		m.tree.unlock()
		m.tree.unlock = nil
	}
}

// places are where somebody is.
type places struct {
	refs  map[string]bool
	files map[string]bool
	above map[string]int // how many of the files are below a directory
}

// folded are the names by which files are compared: two may be one.
func folded(files []string) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = strings.ToLower(f)
	}
	return out
}

// free reports whether nobody is at a place, at a directory above it, or below it.
//
// A ref is one participant's. The files then play no part.
func (p *places) free(target string, files []string) bool {
	if target != "" {
		return !p.refs[target]
	}
	for _, file := range files {
		if p.files[file] || p.above[file] > 0 {
			return false
		}
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			if p.files[dir] {
				return false
			}
		}
	}
	return true
}

// take marks a place as taken (1), or leaves it (-1).
func (p *places) take(target string, files []string, by int) {
	if p.refs == nil {
		p.refs, p.files, p.above = map[string]bool{}, map[string]bool{}, map[string]int{}
	}
	if target != "" {
		p.refs[target] = by > 0
		return
	}
	for _, file := range files {
		p.files[file] = by > 0
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			p.above[dir] += by
		}
	}
}
