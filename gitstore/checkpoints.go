package gitstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// CheckpointsRef is the ref beside a ledger's that keeps what witnesses signed of it
// (docs/witnesses.md). What is in it counts by its signatures: the ref is remembered by nobody,
// and its files are untrusted.
func CheckpointsRef(ledger string) string {
	name, ok := strings.CutPrefix(ledger, "refs/agent/")
	if !ok {
		name = strings.TrimPrefix(ledger, "refs/")
	}
	return "refs/agent/" + name + "-checkpoints"
}

// Checkpoints are the files of that ref, by name, and the commit that has them: "" if there is none.
type Checkpoints struct {
	Tip   string
	Files map[string][]byte
}

// The bounds of what is read: files, the bytes of one, and those of a fetch.
const (
	mostCheckpoints     = 64
	mostCheckpoint      = 32 << 10
	mostCheckpointFetch = 128 << 20 // with the history of the ref, a kilobyte a settle
)

// checkpointName is what such a file can be called.
var checkpointName = lazyregexp.New(`^[0-9]{1,18}-[0-9a-f]{12}$`)

// readCheckpoints reads the files of a commit; what is no such file is passed over.
func readCheckpoints(s source, tip plumbing.Hash) (Checkpoints, error) {
	k := Checkpoints{Tip: hexOf(tip), Files: map[string][]byte{}}
	if tip.IsZero() {
		return k, nil
	}
	c, err := readCommit(s, tip)
	if err != nil {
		return k, err
	}
	entries, err := readTree(s, c.Tree)
	if err != nil {
		return k, err
	}
	for _, e := range entries {
		if e.mode != filemode.Regular || !checkpointName().MatchString(e.name) || len(k.Files) >= mostCheckpoints {
			continue
		}
		if _, size, err := s.Size(e.id); err != nil || size > mostCheckpoint {
			if err != nil {
				return k, err
			}
			continue
		}
		if k.Files[e.name], err = readObject(s, plumbing.BlobObject, e.id); err != nil {
			return k, err
		}
	}
	return k, nil
}

// checkpointsRef is where the clone keeps them.
func (l *Ledger) checkpointsRef() plumbing.ReferenceName {
	return plumbing.ReferenceName(CheckpointsRef(l.ref.String()))
}

// Checkpoints reads what the clone keeps.
func (l *Ledger) Checkpoints(context.Context) (Checkpoints, error) {
	tip, err := l.repo.tip(l.checkpointsRef())
	if err != nil {
		return Checkpoints{}, err
	}
	return readCheckpoints(l.repo.objects, tip)
}

// KeepCheckpoints replaces the files that were read by others, in a commit on the one that had them. If
// another commit has taken its place, it returns ledger.ErrMoved.
func (l *Ledger) KeepCheckpoints(_ context.Context, before Checkpoints, files map[string][]byte, when time.Time) error {
	batch := &packfile.Batch{}
	made, err := checkpointsCommit(l.repo.objects, batch, files, when, before.Tip)
	if err != nil {
		return err
	}
	return l.keepCheckpoints(plumbing.NewHash(before.Tip), made, batch)
}

// checkpointsCommit makes the commit with these files and no others.
func checkpointsCommit(s source, to *packfile.Batch, files map[string][]byte, when time.Time, parents ...string) (plumbing.Hash, error) {
	var c commit
	for _, p := range parents {
		if p != "" {
			c.Parents = append(c.Parents, plumbing.NewHash(p))
		}
	}
	b := builder{overlay{to, s}, to}
	return b.commit(c, changes(files), func(c commit) ([]byte, error) {
		return object.EncodeCommit(c, object.Us, object.Us, when, "checkpoints of the ledger\n"), nil
	})
}

// keepCheckpoints writes objects and moves the clone's ref to a commit.
func (l *Ledger) keepCheckpoints(old, next plumbing.Hash, batch *packfile.Batch) error {
	var packs []notedPack
	if batch.Len() > 0 {
		pack, err := writePack(l.repo.objects, batch)
		if err != nil {
			return err
		}
		defer l.repo.objects.Release(pack.name)
		packs = append(packs, pack)
	}
	unlock, err := l.repo.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.repo.notePacks(packs...); err != nil {
		return err
	}
	return l.repo.moveRef(l.checkpointsRef(), old, next)
}

// Checkpoints reads what the remote keeps and, if the clone has the ledger itself, what that keeps
// beside it; the remote's tip is that of what was read.
func (s *Shared) Checkpoints(ctx context.Context) (Checkpoints, error) {
	theirs, err := s.server.Tip(ctx, CheckpointsRef(s.ref))
	if err != nil {
		return Checkpoints{}, err
	}
	if s.partial != nil {
		s.partial.ctx = ctx
		if !theirs.IsZero() && !s.partial.has(theirs) {
			if err := s.partial.fetch(wire.FetchRequest{Wants: []plumbing.Hash{theirs}, Depth: 1, Limit: mostCheckpointFetch}); err != nil {
				return Checkpoints{}, err
			}
		}
		return readCheckpoints(s.partial.own, theirs)
	}
	held, err := s.fetchCheckpoints(ctx, theirs)
	defer s.local.repo.objects.Release(held...)
	if err != nil {
		return Checkpoints{}, err
	}
	both, err := readCheckpoints(s.local.repo.objects, theirs)
	if err != nil {
		return Checkpoints{}, err
	}
	ours, err := s.local.Checkpoints(ctx)
	for name, raw := range ours.Files {
		if _, has := both.Files[name]; !has {
			both.Files[name] = raw
		}
	}
	return both, err
}

// fetchCheckpoints brings the remote's to the clone, whole, and returns the packs that are held.
func (s *Shared) fetchCheckpoints(ctx context.Context, theirs plumbing.Hash) (held []string, err error) {
	repo := s.local.repo
	if theirs.IsZero() || repo.has(theirs) {
		return nil, nil
	}
	req := wire.FetchRequest{Wants: []plumbing.Hash{theirs}, Limit: mostCheckpointFetch}
	ours, err := repo.tip(s.local.checkpointsRef())
	if err != nil {
		return nil, err
	}
	if !ours.IsZero() {
		req.Haves = []plumbing.Hash{ours}
	}
	batch, err := fetchBatch(ctx, s.server, req, repo.objects)
	if err == nil {
		err = repo.closed(batch, theirs)
	}
	if err != nil {
		return nil, fmt.Errorf("fetching the checkpoints of the ledger: %w", err)
	}
	pack, err := writePack(repo.objects, batch)
	if err != nil {
		return nil, err
	}
	unlock, err := repo.lock()
	if err != nil {
		return []string{pack.name}, err
	}
	defer unlock()
	return []string{pack.name}, repo.notePacks(pack)
}

// KeepCheckpoints replaces the files that were read, there and, if the clone has the ledger itself, here.
// If somebody else has moved the remote's ref, it returns ledger.ErrMoved.
func (s *Shared) KeepCheckpoints(ctx context.Context, before Checkpoints, files map[string][]byte, when time.Time) error {
	var objects source = s.local.repo.objects
	if s.partial != nil {
		s.partial.ctx = ctx
		objects = s.partial.own
	}
	batch := &packfile.Batch{}
	made, err := checkpointsCommit(objects, batch, files, when, before.Tip)
	if err != nil {
		return err
	}
	if err := push(ctx, s.server, CheckpointsRef(s.ref), plumbing.NewHash(before.Tip), made, batch, maxPushes, s.pause); err != nil {
		return explained(err)
	}
	if s.partial != nil {
		return writeOwn(s.partial.own, batch)
	}
	ours, err := s.local.repo.tip(s.local.checkpointsRef())
	if err != nil {
		return err
	}
	err = s.local.keepCheckpoints(ours, made, batch)
	if errors.Is(err, ledger.ErrMoved) { // another process keeps what it read: the remote has this
		err = nil
	}
	return err
}

// SyncCheckpoints brings what the remote keeps into the clone, beside what that has. It reports whether
// there is anything.
func (s *Shared) SyncCheckpoints(ctx context.Context, when time.Time) (bool, error) {
	theirs, err := s.server.Tip(ctx, CheckpointsRef(s.ref))
	if err != nil || theirs.IsZero() {
		return false, err
	}
	repo := s.local.repo
	ours, err := repo.tip(s.local.checkpointsRef())
	if err != nil || ours == theirs {
		return true, err
	}
	held, err := s.fetchCheckpoints(ctx, theirs)
	defer repo.objects.Release(held...)
	if err != nil {
		return true, err
	}
	next, batch := theirs, &packfile.Batch{}
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
			both, err := s.Checkpoints(ctx)
			if err != nil {
				return true, err
			}
			if next, err = checkpointsCommit(repo.objects, batch, both.Files, when, theirs.String(), ours.String()); err != nil {
				return true, err
			}
		}
	}
	err = s.local.keepCheckpoints(ours, next, batch)
	if errors.Is(err, ledger.ErrMoved) {
		err = nil
	}
	return true, err
}

// A Leaf is a commit of the ledger, and what a hash made of its content.
type Leaf struct {
	ID   string
	Hash [32]byte
}

// Leaves returns the commits of the ledger that ends with a tip, the first one first.
func (l *Ledger) Leaves(_ context.Context, tip string, hash func(commit []byte) [32]byte) ([]Leaf, error) {
	return leaves(l.repo.objects, plumbing.NewHash(tip), hash)
}

// Leaves is the same. In a partial copy it takes all commits, without their trees and files where the
// server can leave these out.
func (s *Shared) Leaves(ctx context.Context, tip string, hash func(commit []byte) [32]byte) ([]Leaf, error) {
	if s.partial == nil {
		return s.local.Leaves(ctx, tip, hash)
	}
	s.partial.ctx = ctx
	at := plumbing.NewHash(tip)
	all, err := leaves(s.partial.own, at, hash)
	if !errors.Is(err, packfile.ErrMissing) {
		return all, err
	}
	if err := s.partial.fetchHistory(at); err != nil {
		return nil, err
	}
	return leaves(s.partial.own, at, hash)
}

// leaves follows first parents: no ledger has others, and the audit says so.
func leaves(s source, tip plumbing.Hash, hash func([]byte) [32]byte) (all []Leaf, err error) {
	for at := tip; !at.IsZero(); {
		raw, err := readObject(s, plumbing.CommitObject, at)
		if err != nil {
			return nil, fmt.Errorf("reading commit %s: %w", at, err)
		}
		c, err := object.ParseCommit(raw)
		if err != nil {
			return nil, fmt.Errorf("reading commit %s: %w", at, err)
		}
		all = append(all, Leaf{at.String(), hash(raw)})
		at = plumbing.ZeroHash
		if len(c.Parents) > 0 {
			at = c.Parents[0]
		}
	}
	slices.Reverse(all)
	return all, nil
}
