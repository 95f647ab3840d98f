package batch

import (
	"context"
	"slices"
	"sync"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// A writing is a member that waits to write to the working tree.
type writing struct {
	files []patch.Change
	ready chan struct{}
	ops   []result.Operation
}

// tree is the working tree that the members share. It is locked while any of
// them applies.
type tree struct {
	pipeline.Worktree

	entry  sync.Mutex // held while the lock is waited for, which may take long
	users  int
	unlock func()

	mu    sync.Mutex // a round is closed with it, whoever waits for the lock
	begun []string   // to be noted before the ledger is told
	ended []string   // to be forgotten, some time after that
}

// lock keeps other processes out while a member applies. refresh is called where
// there may have been one.
func (t *tree) lock(ctx context.Context, refresh func() error) (leave func(), err error) {
	t.entry.Lock()
	defer t.entry.Unlock()
	if t.users == 0 {
		if t.unlock, err = t.Worktree.Lock(ctx); err != nil {
			return nil, err
		}
		if err = refresh(); err != nil {
			t.unlock()
			return nil, err
		}
	}
	t.users++
	return t.leave, nil
}

func (t *tree) leave() {
	t.entry.Lock()
	defer t.entry.Unlock()
	if t.users--; t.users == 0 {
		t.mu.Lock()
		_ = t.forget() // a note that is left names an apply that has ended
		t.mu.Unlock()
		t.unlock()
	}
}

// note notes what is about to be begun, so that a crash is taken up where it was.
func (t *tree) note() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.begun) == 0 {
		return nil
	}
	err := t.forget()
	if err == nil {
		err = t.Worktree.Begin(t.begun...)
	}
	if err == nil {
		t.begun = nil
	}
	return err
}

// forget is note for what has ended. The caller holds mu.
func (t *tree) forget() error {
	if len(t.ended) == 0 {
		return nil
	}
	err := t.Worktree.End(t.ended...)
	if err == nil {
		t.ended = nil
	}
	return err
}

// write writes the files of all as one write. Where that fails each is written
// alone: those that are done are found to be, and the others have their own
// error.
func (t *tree) write(all []*writing) {
	var files []patch.Change
	for _, w := range all {
		files = append(files, w.files...)
	}
	if len(files) == 0 {
		return
	}
	ops := t.Worktree.Write(files)
	for _, w := range all {
		w.ops, ops = ops[:len(w.files):len(w.files)], ops[len(w.files):]
		if len(all) > 1 && unfinished(w.ops) {
			w.ops = t.Worktree.Write(w.files)
		}
	}
}

// unfinished reports whether a write may do better alone. One that read back
// something else than it wrote has its answer.
func unfinished(ops []result.Operation) bool {
	return slices.ContainsFunc(ops, func(o result.Operation) bool { return o.Status != result.StatusSuccess }) &&
		!slices.ContainsFunc(ops, func(o result.Operation) bool { return o.Error == workspace.Mismatch })
}

// memberTree is the working tree as one member has it.
type memberTree struct {
	pipeline.Worktree
	member *member
}

func (m *memberTree) Lock(ctx context.Context) (func(), error) {
	return m.member.tree.lock(ctx, func() error {
		m.member.mu.Lock()
		defer m.member.mu.Unlock()
		m.member.shared.mu.Lock()
		defer m.member.shared.mu.Unlock()
		return m.member.refresh(ctx)
	})
}

// Begin is noted with those of the others, when the round is closed: the ledger
// is told of it then.
func (m *memberTree) Begin(applies ...string) error {
	t := &m.member.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = append(t.begun, applies...)
	t.ended = without(t.ended, applies)
	return nil
}

func (m *memberTree) Begun() ([]string, error) {
	t := &m.member.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	begun, err := t.Worktree.Begun()
	return append(without(begun, t.ended), t.begun...), err
}

func (m *memberTree) End(applies ...string) error {
	t := &m.member.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = append(t.ended, applies...)
	t.begun = without(t.begun, applies)
	return nil
}

func without(all, some []string) []string {
	return slices.DeleteFunc(all, func(a string) bool { return slices.Contains(some, a) })
}

// Write waits for the end of the round.
func (m *memberTree) Write(files []patch.Change) []result.Operation {
	w := &writing{files: files, ready: make(chan struct{})}
	m.member.await(context.Background(), w.ready, func() { m.member.writes = append(m.member.writes, w) })
	return w.ops
}
