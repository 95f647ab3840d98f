package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// RemoteRefs are the refs of a remote repository, whose commits are made in a
// clone. Several goroutines may use it.
type RemoteRefs struct {
	Repo   *Repo
	Server *wire.Server
	// Pause waits before the same push is tried again; attempt counts from 1.
	// nil does not wait.
	Pause func(ctx context.Context, attempt int)
}

var _ code.Refs = (*RemoteRefs)(nil)

// A PushError is a ref that the remote would not move: it is protected, a rule
// refuses what the commit holds, or we may not push there. Reason is what the
// remote says, one line of at most 500 visible characters, to be shown and never
// decided by.
type PushError struct {
	Ref, Remote, Reason string
	Err                 error // a wire.RejectedError or wire.AuthError is in it
}

func (e *PushError) Error() string {
	return fmt.Sprintf("%s refuses to move %+q: %s", e.Remote, e.Ref, e.Reason)
}

func (e *PushError) Unwrap() error { return e.Err }

// Ref returns the commit that a ref of the remote names, which is in the clone
// afterwards (Repo.Fetch); "" if there is no such ref.
func (m *RemoteRefs) Ref(ctx context.Context, name string) (string, error) {
	tip, err := m.Repo.fetch(ctx, m.Server, name, true)
	return hexOf(tip), err
}

// BuildCommit is the clone's.
func (m *RemoteRefs) BuildCommit(ctx context.Context, parent string, files []patch.Change, c code.Commit) (string, error) {
	return m.Repo.BuildCommit(ctx, parent, files, c)
}

// CheckRef refuses, with a *RefError, all but branches and refs/agent/applied/.
func (m *RemoteRefs) CheckRef(_ context.Context, name string) error {
	if _, err := refName(name); err != nil {
		return err
	}
	branch, isBranch := strings.CutPrefix(name, "refs/heads/")
	switch {
	case !isBranch && !strings.HasPrefix(name, "refs/agent/applied/"):
		return &RefError{name, "is not a branch, nor below refs/agent/applied/"}
	case isBranch && (branch == "HEAD" || strings.HasPrefix(branch, "refs/")): // the second is read as another ref
		return &RefError{name, "is not a name for a branch"}
	}
	return nil
}

// MoveRef sends the commit next, with the objects that its parent has not, and
// sets the ref to it if it still is old ("": absent); else it returns
// ledger.ErrMoved. next must be one commit on old. A ref that is at next, or
// at a commit after it, is left alone. What the remote refuses is a *PushError.
func (m *RemoteRefs) MoveRef(ctx context.Context, name, old, next string) error {
	if err := m.CheckRef(ctx, name); err != nil {
		return err
	}
	batch, err := m.Repo.step(plumbing.NewHash(old), plumbing.NewHash(next))
	if err != nil {
		return err
	}
	encoded, err := batch.Encode()
	if err != nil {
		return err
	}
	pack, err := io.ReadAll(encoded.Reader())
	if err != nil {
		return err
	}
	if err := m.push(ctx, name, plumbing.NewHash(old), plumbing.NewHash(next), pack); err != nil {
		return err
	}
	m.Repo.placed(plumbing.NewHash(next))
	return nil
}

// push sends the pack. Whatever goes wrong, what the ref says afterwards
// decides. What was refused is sent once more only, as another push may have
// held the ref.
func (m *RemoteRefs) push(ctx context.Context, name string, old, next plumbing.Hash, pack []byte) error {
	for attempt := 1; ; attempt++ {
		pushed := m.Server.Push(ctx, name, old, next, pack)
		if pushed == nil {
			return nil
		}
		var rejected *wire.RejectedError
		var refused *wire.AuthError
		no := errors.As(pushed, &rejected)
		tip, err := m.Server.Tip(ctx, name)
		switch {
		case err == nil && tip == next:
			return nil
		case err == nil && tip != old:
			return m.overtaken(ctx, name, next)
		case errors.As(pushed, &refused), no && attempt > 1:
			return m.explain(name, pushed)
		case attempt == maxPushes, ctx.Err() != nil:
			return pushed
		}
		if m.Pause != nil {
			m.Pause(ctx, attempt)
		}
	}
}

// overtaken: somebody else has moved the ref, before us or after us.
func (m *RemoteRefs) overtaken(ctx context.Context, name string, ours plumbing.Hash) error {
	tip, err := m.Repo.fetch(ctx, m.Server, name, true)
	if err != nil {
		return err
	}
	if tip.IsZero() {
		return ledger.ErrMoved
	}
	after, err := m.Repo.Descends(ctx, tip.String(), ours.String())
	if err == nil && !after {
		err = ledger.ErrMoved
	}
	return err
}

// explain makes a refusal what a person is told.
func (m *RemoteRefs) explain(name string, err error) error {
	reason := err.Error()
	var rejected *wire.RejectedError
	var refused *wire.AuthError
	if errors.As(err, &rejected) {
		reason = rejected.Status
	} else if errors.As(err, &refused) {
		reason = refused.Error()
	}
	var at *wire.Error
	if errors.As(err, &at) && at.Message != "" {
		reason += ": " + at.Message
	}
	return &PushError{name, m.Server.String(), ledger.OneLine(reason, 500), err}
}

// step is what a commit has that its one parent, which is old unless that is
// zero, has not: the commit, and the trees and files on changed paths.
func (r *Repo) step(old, next plumbing.Hash) (*packfile.Batch, error) {
	c, err := readCommit(r.objects, next)
	if err != nil {
		return nil, err
	}
	if len(c.parents) != 1 || !old.IsZero() && c.parents[0] != old {
		return nil, fmt.Errorf("commit %s is not one commit on %s", next, old)
	}
	parent, err := readCommit(r.objects, c.parents[0])
	if err != nil {
		return nil, err
	}
	root := treeChange{"", treeEntry{mode: filemode.Dir, id: parent.tree}, treeEntry{mode: filemode.Dir, id: c.tree}}
	changes, there := []treeChange{root}, map[plumbing.Hash]bool{parent.tree: true}
	err = diffTrees(r.objects, parent.tree, c.tree, func(d treeChange) error {
		changes, there[d.old.id] = append(changes, d), true
		return nil
	})
	if err != nil {
		return nil, err
	}
	batch := &packfile.Batch{}
	if err := r.send(batch, next, plumbing.ZeroHash); err != nil {
		return nil, err
	}
	for _, d := range changes {
		if d.new.mode == submodule || there[d.new.id] || d.new.id.IsZero() {
			continue
		}
		if err := r.send(batch, d.new.id, d.old.id); err != nil {
			return nil, err
		}
	}
	return batch, nil
}

func (r *Repo) send(to *packfile.Batch, id, base plumbing.Hash) error {
	o, err := r.objects.Read(id)
	if err == nil {
		_, err = to.AddOn(o, base)
	}
	return err
}
