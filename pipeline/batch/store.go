package batch

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// An appending is a member that waits to write the ledger.
type appending struct {
	member  *member
	tip     string // what its entries were made on
	entries []ledger.Entry
	ready   chan struct{}

	made string
	err  error
}

var _ ledger.Store = (*member)(nil)

// Snapshot returns the ledger as this round sees it. It may have moved on; then
// what is appended to it does not get there.
func (m *member) Snapshot(context.Context, ...string) (ledger.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snap, nil
}

// At returns the ledger as it was.
func (m *member) At(ctx context.Context, tip string) (ledger.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if tip == m.snap.Tip {
		return m.snap, nil
	}
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	return m.Batch.runner.Store.At(ctx, tip)
}

// Append waits for the end of the round.
func (m *member) Append(ctx context.Context, tip string, entries ...ledger.Entry) (string, error) {
	a := &appending{member: m, tip: tip, entries: entries, ready: make(chan struct{})}
	m.await(ctx, a.ready, func() {
		m.appends = append(m.appends, a)
		m.hurry(ctx)
	})
	return a.made, a.err
}

// append writes what fits together, and sends the others to look again.
func (b *Batch) append(ctx context.Context, all []*appending) {
	together, entries := b.together(all)
	if len(together) == 0 {
		return
	}
	if err := b.tree.note(); err != nil {
		settle(together, "", err)
		return
	}
	made, err := b.runner.Store.Append(ctx, b.snap.Tip, entries...)
	settle(together, made, err)
	if errors.Is(err, ledger.ErrMoved) {
		b.moves++
		b.runner.Pause(ctx, b.moves)
	} else {
		b.moves = 0
	}
	b.look(ctx, made, err, all)
}

// look sees the ledger as it is after an append. Where it cannot be read nobody
// can go on: what they make of the old one is refused.
func (b *Batch) look(ctx context.Context, made string, err error, all []*appending) {
	if err == nil {
		var snap ledger.Snapshot
		if snap, err = b.runner.Store.At(ctx, made); err == nil {
			b.snap = snap
		}
	} else {
		err = b.refresh(ctx)
	}
	if err == nil {
		return
	}
	for _, a := range all {
		if a.err != nil {
			a.err = err
		}
	}
}

func settle(all []*appending, made string, err error) {
	for _, a := range all {
		a.made, a.err = made, err
	}
}

// together are the entries that may be appended as one chain: none was judged
// without something that one before it changes.
func (b *Batch) together(all []*appending) (chosen []*appending, entries []ledger.Entry) {
	denied := map[string]bool{} // patches of which a denial is written
	closed := false             // by an entry that writes anywhere else
	for _, a := range all {
		if a.err = ledger.ErrMoved; closed || a.tip != b.snap.Tip || denied[a.member.patch] {
			continue
		}
		for _, e := range a.entries {
			patches, elsewhere := outside(e)
			closed = closed || elsewhere
			for _, patch := range patches {
				denied[patch] = true
			}
		}
		chosen, entries = append(chosen, a), append(entries, a.entries...)
	}
	return chosen, entries
}

// outside tells what an entry writes that is not of its transaction alone: the
// patches whose denials it adds to, and whether there is anything else.
func outside(e ledger.Entry) (denied []string, elsewhere bool) {
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
