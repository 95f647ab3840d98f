package gitstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Kept reads what the remote keeps and, if the ref does not grow and the clone has the ledger
// itself, what that keeps beside it; the remote's tip is that of what was read.
func (s *Shared) Kept(ctx context.Context, b Beside, want func(name string) bool) (Kept, error) {
	theirs, err := s.server.Tip(ctx, b.Ref(s.ref))
	if err != nil {
		return Kept{}, err
	}
	if s.partial != nil {
		s.partial.ctx = ctx
		if !theirs.IsZero() && !s.partial.has(theirs) {
			if err := s.partial.fetch(wire.FetchRequest{Wants: []packfile.ID{theirs}, Depth: 1, Limit: b.fetch}); err != nil {
				return Kept{}, err
			}
		}
		return b.read(s.partial.own, theirs, want)
	}
	held, err := s.fetchBeside(ctx, b, theirs)
	defer held.Release()
	if err != nil {
		return Kept{}, err
	}
	both, err := b.read(s.local.repo.objects, theirs, want)
	if err != nil || b.grows { // Keep adds what the clone has
		return both, err
	}
	ours, err := s.local.Kept(ctx, b, want)
	for name, raw := range ours.Files {
		if _, has := both.Files[name]; !has {
			both.Files[name] = raw
		}
	}
	return both, err
}

// fetchBeside brings the remote's to the clone, whole, and returns the pack that is held.
func (s *Shared) fetchBeside(ctx context.Context, b Beside, theirs packfile.ID) (held packfile.Held, err error) {
	repo := s.local.repo
	if theirs.IsZero() || repo.has(theirs) {
		return "", nil
	}
	req := wire.FetchRequest{Wants: []packfile.ID{theirs}, Limit: b.fetch}
	ours, err := repo.tip(s.local.besideRef(b))
	if err != nil {
		return "", err
	}
	if !ours.IsZero() {
		req.Haves = []packfile.ID{ours}
	}
	if held, err = fetchPack(ctx, s.server, req, repo.objects, true); err != nil {
		err = fmt.Errorf("fetching the %s of the ledger: %w", b.what, err)
	}
	return held, err
}

// Keep replaces the files that were read, or adds to them, there and, if the clone has the ledger
// itself, here. If somebody else has moved the remote's ref, it returns writing.ErrMoved.
func (s *Shared) Keep(ctx context.Context, b Beside, before Kept, files map[string][]byte, when time.Time) error {
	var objects source = s.local.repo.objects
	if s.partial != nil {
		s.partial.ctx = ctx
		objects = s.partial.own
	}
	ours, theirs := packfile.None, s.local.repo.id(before.Tip)
	if s.partial == nil {
		var err error
		if ours, err = s.local.repo.tip(s.local.besideRef(b)); err != nil {
			return err
		}
		if files, err = b.with(objects, files, ours, theirs); err != nil {
			return err
		}
	}
	batch := s.local.repo.batch()
	made, err := b.commit(objects, batch, files, when, theirs)
	switch {
	case errors.Is(err, errUnchanged): // the clone may not have it yet
		made = theirs
	case err != nil:
		return err
	default:
		pack, err := batch.Encode()
		if err == nil {
			err = push(ctx, s.server, b.Ref(s.ref), theirs, made, pack, maxPushes, s.pause)
		}
		if err != nil {
			return explained(err)
		}
	}
	if s.partial != nil {
		return packfile.Hold(s.partial.own.Dir, batch, func() error { return nil }) // git deletes nothing there
	}
	err = s.local.keep(b, ours, made, batch)
	if errors.Is(err, writing.ErrMoved) { // another process keeps what it read: the remote has this
		err = nil
	}
	return err
}

// SyncBeside brings what the remote keeps into the clone, beside what that has. It reports whether
// there is anything.
func (s *Shared) SyncBeside(ctx context.Context, b Beside, when time.Time) (bool, error) {
	theirs, err := s.server.Tip(ctx, b.Ref(s.ref))
	if err != nil || theirs.IsZero() {
		return false, err
	}
	repo := s.local.repo
	ours, err := repo.tip(s.local.besideRef(b))
	if err != nil || ours == theirs {
		return true, err
	}
	held, err := s.fetchBeside(ctx, b, theirs)
	defer held.Release()
	if err != nil {
		return true, err
	}
	next, batch := theirs, s.local.repo.batch()
	if !ours.IsZero() {
		newer, err := descends(repo.objects, ours, theirs)
		if newer || err != nil {
			return true, err
		}
		older, err := descends(repo.objects, theirs, ours)
		if err != nil {
			return true, err
		}
		if !older {
			files := map[string][]byte{}
			if b.grows {
				files, err = b.with(repo.objects, files, ours, theirs)
			} else {
				var both Kept
				both, err = s.Kept(ctx, b, nil)
				files = both.Files
			}
			if err != nil {
				return true, err
			}
			next, err = b.commit(repo.objects, batch, files, when, theirs, ours)
			if errors.Is(err, errUnchanged) {
				next, err = theirs, nil
			}
			if err != nil {
				return true, err
			}
		}
	}
	err = s.local.keep(b, ours, next, batch)
	if errors.Is(err, writing.ErrMoved) {
		err = nil
	}
	return true, err
}
