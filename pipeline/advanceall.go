package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// maxTogether bounds how many transactions are held in memory at once.
const maxTogether = 1000

// fresh is how long what was judged waits for others. An approval may end, or a
// denial be said, while somebody else's commands run.
var fresh = 2 * time.Second

// AdvanceAll is Advance for many transactions, which are given the oldest first;
// they read and write together (docs/batch.md). At most concurrency of them work
// at the same time. done gets each Outcome with the transaction's index, one
// call after the other; it must not use the Runner. The error is that the ledger
// could not be read: done is not called then for those that were not begun.
func (r *Runner) AdvanceAll(ctx context.Context, all []ledger.Transaction, to Ahead, concurrency int, done func(i int, o Outcome, err error)) error {
	first := 0
	for some := range slices.Chunk(all, maxTogether) {
		err := r.sideBySide(ctx, some, concurrency, func(m *participant) func() {
			to := to
			to.place = m.place
			o, err := m.own().Advance(ctx, some[m.index].TransactionID, to)
			return func() { done(first+m.index, o, err) }
		})
		if err != nil {
			return err
		}
		first += len(some)
	}
	return nil
}

// sideBySide calls do for each transaction, side by side, and then what it returns,
// one after the other.
func (r *Runner) sideBySide(ctx context.Context, all []ledger.Transaction, concurrency int, do func(*participant) func()) error {
	b := &rounds{runner: r, events: make(chan func()), free: max(1, concurrency)}
	for i, tx := range all {
		m := &participant{rounds: b, index: i, patch: tx.PatchID(), goOn: make(chan struct{})}
		if p := tx.Pointers.Proposal; p != nil {
			m.files = folded(p.TargetFiles)
		}
		b.all, b.paths = append(b.all, m), append(b.paths, ledger.Dir(tx.TransactionID))
	}
	if err := b.refresh(ctx); err != nil {
		return err
	}
	for _, m := range b.all {
		go func() {
			<-m.goOn
			told := do(m)
			m.events <- func() {
				told()
				m.over = true
				m.live--
				m.working--
				m.free++
			}
		}()
	}
	b.run(ctx)
	return nil
}

// rounds take transactions further side by side. A participant that needs what all
// share, the ledger, the working tree or its turn at a place, asks for it and
// waits; once nobody works any more the round is closed: what was asked for is
// done in one go, and all go on.
//
// One goroutine, in run, has all of this to itself. Members read snap, which
// changes only while nobody works, and send events to change anything else.
type rounds struct {
	runner *Runner
	repo   sync.Mutex  // held by the participant that uses the repository
	events chan func() // what run is to do

	all     []*participant // the oldest first
	ready   []*participant // to begin, or to go on
	free    int            // how many more may work at the same time
	live    int            // how many have not ended
	working int            // how many use what all share, or may
	away    int            // how many are busy with something that nobody shares

	snap    ledger.Snapshot  // the ledger as this round sees it
	paths   []string         // what all participants read of it
	moves   int              // how often the ledger has moved in a row
	overdue <-chan time.Time // when what was judged has waited for fresh, nil while nothing has
	places  places
	tree    treeLock
}

// run goes on until all participants have ended. A round is closed when nobody works,
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
			panic("pipeline: transactions that wait for each other")
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
	asks  any      // an *appending, a *writing or a *turn that it waits for
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

// apart does something that uses nothing that participants share, and may take long:
// rounds are closed meanwhile.
func apart[T any](m *participant, do func() (T, error)) (T, error) {
	m.events <- func() {
		m.working--
		m.away++
	}
	value, err := do()
	m.events <- func() {
		m.away--
		m.working++
	}
	return value, err
}

// own returns the Runner of a participant.
func (m *participant) own() *Runner {
	r := m.runner.With(Known{})
	r.Store, r.Pause = m, nil
	share(r, &m.repo)
	if r.Worktree != nil {
		r.Worktree = &sharedTree{r.Worktree, m}
	}
	if r.Forge != nil {
		r.Forge = apartForge{r.Forge, m}
	}
	if r.Commands != nil {
		r.Commands = apartCommands{r.Commands, m}
	}
	return r
}

var _ ledger.Store = (*participant)(nil)

// Snapshot returns the ledger as this round sees it. It may have moved on; then
// what is appended to it does not get there.
func (m *participant) Snapshot(context.Context, ...string) (ledger.Snapshot, error) {
	return m.snap, nil
}

// At returns the ledger as it was.
func (m *participant) At(ctx context.Context, tip string) (ledger.Snapshot, error) {
	if tip == m.snap.Tip {
		return m.snap, nil
	}
	return alone(&m.repo, func() (ledger.Snapshot, error) { return m.runner.Store.At(ctx, tip) })
}

// Append waits for the end of the round. What was judged on an earlier one's
// ledger is sent to look again.
func (m *participant) Append(_ context.Context, tip string, entries ...ledger.Entry) (string, error) {
	if tip != m.snap.Tip {
		return "", ledger.ErrMoved
	}
	a := &appending{entries: entries}
	m.ask(a)
	return a.made, a.err
}

// place waits for its turn at a target, and until no other process writes there.
func (m *participant) place(_ context.Context, target string) (leave func(), err error) {
	if target == TargetWorktree {
		target = ""
	}
	t := &turn{target: target}
	m.ask(t)
	if t.err != nil {
		return nil, t.err
	}
	return func() { m.events <- func() { m.leave(t) } }, nil
}

// sharedTree is the working tree as a participant has it: written together, and noted
// when the ledger is told.
type sharedTree struct {
	Worktree
	m *participant
}

func (t *sharedTree) Begin(applies ...string) error {
	t.m.begun, t.m.ended = append(t.m.begun, applies...), except(t.m.ended, applies)
	return nil
}

func (t *sharedTree) Begun() ([]string, error) {
	begun, err := t.Worktree.Begun()
	return append(except(begun, t.m.ended), t.m.begun...), err
}

func (t *sharedTree) End(applies ...string) error {
	t.m.begun, t.m.ended = except(t.m.begun, applies), append(t.m.ended, applies...)
	return nil
}

func (t *sharedTree) Write(files []patch.Change) []result.Operation {
	w := &writing{files: files}
	t.m.ask(w)
	return w.ops
}

func except(all, some []string) []string {
	return slices.DeleteFunc(all, func(a string) bool { return slices.Contains(some, a) })
}
