package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/go-git/go-git/v5/plumbing"
)

// An AcceptError is a tip that cannot be accepted: it is not the ledger's, or
// nothing is wrong with it.
type AcceptError struct{ Message string }

func (e *AcceptError) Error() string { return e.Message }

// Record makes the entry that records an acceptance, from the accepted tip's
// tree and the tip that was remembered.
type Record func(tree fs.FS, remembered string) (ledger.Entry, error)

// acceptable holds a tip to what a person looked at and accepts.
func (m memory) acceptable(now plumbing.Hash, tip string, c tipCheck) (seen plumbing.Hash, err error) {
	if seen, err = m.read(); err != nil {
		return seen, err
	}
	if now.IsZero() || now.String() != tip {
		return seen, &AcceptError{fmt.Sprintf("%s is at %s, not at %s", m.name, now, tip)}
	}
	var rollback *RollbackError
	for _, must := range []plumbing.Hash{seen, m.known} {
		err := m.check(now, must, c.descends)
		if errors.As(err, &rollback) {
			return must, nil
		}
		if err != nil {
			return seen, err
		}
	}
	var unverified *UnverifiedError
	if err := c.verify(seen); err != nil {
		if errors.As(err, &unverified) {
			err = nil
		}
		return seen, err
	}
	return seen, &AcceptError{fmt.Sprintf("%s needs no acceptance: its tip descends from what was last seen here, and verifies", m.name)}
}

// AcceptTip takes tip, which must be the ledger's, for good although it does not
// descend from the one remembered or does not verify, records that as an entry on it, and returns
// the new tip.
func (l *Ledger) AcceptTip(_ context.Context, tip string, record Record) (string, error) {
	now, err := l.repo.tip(l.ref)
	if err != nil {
		return "", err
	}
	objects := l.repo.objects
	seen, err := l.seen.acceptable(now, tip, l.checkOf(now))
	if err != nil {
		return "", err
	}
	batch := &packfile.Batch{}
	made, err := acceptance(objects, batch, now, seen, record, l.sign)
	if err != nil {
		return "", err
	}
	pack, err := writePack(objects, batch)
	if err != nil {
		return "", err
	}
	defer objects.Release(pack.name)
	return made.String(), l.move(now, made, pack)
}

func acceptance(s source, to *packfile.Batch, now, seen plumbing.Hash, record Record, sign func([]byte) (string, error)) (plumbing.Hash, error) {
	tree, err := commitTree(s, now)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	entry, err := record(tree, seen.String())
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return chain(s, to, now, []ledger.Entry{entry}, sign)
}

// AcceptTip is the same for the remote's tip. What the clone itself had is kept
// under refs/agent/set-aside/.
func (s *Shared) AcceptTip(ctx context.Context, tip string, record Record) (string, error) {
	now, err := s.server.Tip(ctx, s.local.ref.String())
	if err != nil {
		return "", err
	}
	if now.IsZero() {
		return "", &AcceptError{s.seen.name + " is not there"}
	}
	objects, store, fetched, err := s.fetchAccepted(ctx, now)
	if err != nil {
		return "", err
	}
	defer store.Release(fetched...)
	m := s.seen
	m.known = s.known
	seen, err := m.acceptable(now, tip, tipCheck{
		func(a plumbing.Hash) (bool, error) { return descends(objects, now, a) },
		func(from plumbing.Hash) error {
			if s.partial != nil {
				return s.verifyPartial(from, now)
			}
			return s.verifyWhole(from, plumbing.ZeroHash, now)
		},
	})
	if err != nil {
		return "", err
	}
	batch := &packfile.Batch{}
	made, err := acceptance(objects, batch, now, seen, record, s.local.sign)
	if err != nil {
		return "", err
	}
	if err := s.push(ctx, now, made, batch); err != nil {
		if errors.Is(err, ledger.ErrMoved) {
			err = &AcceptError{s.seen.name + " has moved meanwhile"}
		}
		return "", err
	}
	pack, err := writePack(store, batch)
	if err != nil {
		return "", err
	}
	defer store.Release(pack.name)
	s.passed = made
	return made.String(), s.accepted(made, pack)
}

// fetchAccepted gets what is needed of a tip that the memory would refuse, and
// returns the packs that are held until a ref leads to it.
func (s *Shared) fetchAccepted(ctx context.Context, now plumbing.Hash) (from source, to *packfile.Store, held []string, err error) {
	if s.partial != nil {
		s.partial.ctx = ctx
		return s.partial, s.partial.own, nil, s.partial.fetchTip(now)
	}
	ours, err := s.local.repo.tip(s.local.ref)
	if err == nil {
		held, err = s.fetchWhole(ctx, now, ours)
	}
	return s.local.repo.objects, s.local.repo.objects, held, err
}

// accepted moves the memory, and the clone's own ref if it has one.
func (s *Shared) accepted(made plumbing.Hash, pack notedPack) error {
	seen, err := s.seen.read()
	if err == nil {
		err = s.seen.advance(seen, made)
	}
	if err != nil || s.partial != nil {
		return err
	}
	ours, err := s.local.repo.tip(s.local.ref)
	if err != nil {
		return err
	}
	if err := s.local.repo.keepRef(setAside(ours), ours); err != nil {
		return err
	}
	return s.local.move(ours, made, pack)
}

// setAside is the ref that keeps what a clone had.
func setAside(tip plumbing.Hash) string { return "refs/agent/set-aside/" + tip.String()[:12] }
