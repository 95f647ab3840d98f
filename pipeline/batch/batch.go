// Package batch takes many transactions further side by side, and lets them
// read and write the ledger and the working tree together (docs/batch.md).
package batch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A Batch is a set of transactions that are taken further in rounds. When all of
// its members wait, the last of them closes the round: it does what they wait
// for. Where that would take long the round is closed without those who work.
type Batch struct {
	runner *pipeline.Runner
	slots  chan struct{} // held by those who work

	mu      sync.Mutex
	members int
	waiting int
	appends []*appending
	writes  []*writing
	all     []*member // the oldest first
	places  places

	snap  ledger.Snapshot // the ledger as this round sees it
	paths []string        // what all members read of it
	tree  tree
	moves int // how often the ledger has moved in a row

	shared *parts
	timer  *time.Timer // nil while nobody waits to write the ledger
}

// maxMembers bounds how many transactions are held in memory at once.
const maxMembers = 1000

// New prepares a batch of a Runner's parts, of which at most concurrency work at
// the same time. The Runner itself is not to be used before Run returns.
func New(r *pipeline.Runner, concurrency int) *Batch {
	return &Batch{
		runner: r, slots: make(chan struct{}, max(1, concurrency)), tree: tree{Worktree: r.Worktree},
		shared: &parts{repo: r.Repo, refs: r.Refs, code: r.Code, ask: r.Rules},
	}
}

// Run calls do for each transaction, with a Runner that is its own, and returns
// when all have returned. The error is that the ledger could not be read; then do
// was called for none.
func (b *Batch) Run(ctx context.Context, all []ledger.Transaction, do func(ctx context.Context, r *pipeline.Runner, tx ledger.Transaction)) error {
	for len(all) > 0 {
		some := all[:min(len(all), maxMembers)]
		all = all[len(some):]
		if err := b.run(ctx, some, do); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) run(ctx context.Context, all []ledger.Transaction, do func(context.Context, *pipeline.Runner, ledger.Transaction)) error {
	b.paths = nil
	for _, tx := range all {
		b.paths = append(b.paths, ledger.Dir(tx.TransactionID))
	}
	if err := b.refresh(ctx); err != nil {
		return err
	}
	var group sync.WaitGroup
	b.members, b.all = len(all), nil
	for i, tx := range all {
		m := &member{Batch: b, index: i, patch: tx.PatchID()}
		if p := tx.Pointers.Proposal; p != nil {
			m.files = folded(p.TargetFiles)
		}
		b.all = append(b.all, m)
	}
	for i, tx := range all {
		m := b.all[i]
		group.Go(func() {
			m.work()
			defer m.leave(ctx)
			do(ctx, m.runner(), tx)
		})
	}
	group.Wait()
	return nil
}

// A member is one transaction of a batch.
type member struct {
	*Batch
	index int // the oldest is 0
	patch string
	files []string

	asked *turn // that it waits for
	over  bool  // it has had its turn, or takes none
}

func (m *member) runner() *pipeline.Runner {
	r := m.Batch.runner.With(pipeline.Known{})
	m.shared.lend(r)
	r.Store, r.Turn, r.Pause = m, m.turn, nil
	if r.Worktree != nil {
		r.Worktree = &memberTree{Worktree: r.Worktree, member: m}
	}
	return r
}

// work waits until few enough others work.
func (m *member) work() { m.slots <- struct{}{} }

// rest lets another work.
func (m *member) rest() { <-m.slots }

// await waits for the end of the round, or for a turn. enter says what for, and
// is called while nobody else can come or go; ready is closed when it is over.
func (m *member) await(ctx context.Context, ready <-chan struct{}, enter func()) {
	m.locked(func() {
		enter()
		m.waiting++
		m.closeRound(ctx)
	})
	m.rest()
	<-ready
	m.work()
}

// leave ends a membership.
func (m *member) leave(ctx context.Context) {
	m.locked(func() {
		m.members--
		m.over = true
		m.closeRound(ctx)
	})
	m.rest()
}

// locked does something while nobody else can come or go; a panic goes on.
func (b *Batch) locked(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

// closeRound does what everybody waits for, once everybody waits.
func (b *Batch) closeRound(ctx context.Context) {
	if b.waiting == b.members {
		b.close(ctx)
	}
}

// close does what those who wait are waiting for.
func (b *Batch) close(ctx context.Context) {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	writes, appends := b.writes, b.appends
	b.writes, b.appends = nil, nil
	slices.SortFunc(appends, func(x, y *appending) int { return x.member.index - y.member.index })
	b.tree.write(writes)
	b.append(ctx, appends)
	b.waiting -= len(writes) + len(appends)
	for _, w := range writes {
		close(w.ready)
	}
	for _, a := range appends {
		close(a.ready)
	}
	b.call(ctx)
}

// fresh is how long what was judged waits for others. An approval may end, or a
// denial be said, while somebody else's commands run.
var fresh = 2 * time.Second

// hurry closes the round before everybody waits, if that takes long.
func (b *Batch) hurry(ctx context.Context) {
	if b.timer == nil {
		b.timer = time.AfterFunc(fresh, func() { b.locked(func() { b.close(ctx) }) })
	}
}

// refresh sees the ledger as it is now.
func (b *Batch) refresh(ctx context.Context) error {
	snap, err := b.runner.Store.Snapshot(ctx, b.paths...)
	if err == nil && (snap.Tip != b.snap.Tip || b.snap.Tree == nil) {
		b.snap = snap
	}
	return err
}
