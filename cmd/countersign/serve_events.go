package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// toldEvents is all that a server remembers: how many events of a transaction
// its client was told, and which threads it opened.
type toldEvents struct {
	mu     sync.Mutex
	counts map[string]int // by transaction
	open   []thread
}

func (t *toldEvents) opened(one thread) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.ContainsFunc(t.open, func(other thread) bool { return other.id() == one.id() }) && one.id() != everything.id() {
		t.open = append(t.open, one)
	}
}

// threads are that of the whole repository, which is always there, and those
// that were opened here.
func (t *toldEvents) threads() []thread {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]thread{everything}, t.open...)
}

// upTo tells the events of a transaction that were not told yet. first is how
// many to leave out where none were told: the client knows them.
func (t *toldEvents) upTo(id string, events []byte, first int, tell func(json.RawMessage) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	count, known := t.counts[id]
	if !known {
		count = min(first, bytes.Count(events, []byte("\n")))
	}
	n := 0
	for line := range bytes.Lines(events) {
		if n++; n <= count {
			continue
		}
		t.counts[id] = n
		if err := tell(json.RawMessage(bytes.TrimSuffix(line, []byte("\n")))); err != nil {
			return err
		}
	}
	t.counts[id] = max(n, count)
	return nil
}

// A tellingStore tells a client of each event once it is in the ledger.
type tellingStore struct {
	ledger.Store
	told *toldEvents
	tell func(event json.RawMessage) error
}

// Append tells what it recorded. That a client cannot be told is no error of
// the ledger.
func (s *tellingStore) Append(ctx context.Context, tip string, entries ...ledger.Entry) (string, error) {
	next, err := s.Store.Append(ctx, tip, entries...)
	if err != nil {
		return next, err
	}
	for _, e := range entries {
		for name, events := range e.Files {
			id, ours := ledger.TransactionOf(name)
			if !ours || path.Base(name) != ledger.EventsFile {
				continue
			}
			if before, err := s.before(ctx, tip, name); err == nil {
				_ = s.told.upTo(id, events, before, s.tell)
			}
		}
	}
	return next, nil
}

// before is how many events a transaction had at a tip.
func (s *tellingStore) before(ctx context.Context, tip, name string) (int, error) {
	snap, err := s.At(ctx, tip)
	if err != nil {
		return 0, err
	}
	raw, err := fs.ReadFile(snap.Tree, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return bytes.Count(raw, []byte("\n")), err
}
