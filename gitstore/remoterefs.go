package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
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
// writing.ErrMoved. next must be one commit on old. A ref that is at next, or
// at a commit after it, is left alone. What the remote refuses, as it is protected or a rule forbids it, is a [fault.Error].
func (m *RemoteRefs) MoveRef(ctx context.Context, name, old, next string) error {
	if err := m.CheckRef(ctx, name); err != nil {
		return err
	}
	pack, err := m.Repo.step(ctx, m.Repo.id(old), m.Repo.id(next))
	if err != nil {
		return err
	}
	err = push(ctx, m.Server, name, m.Repo.id(old), m.Repo.id(next), pack, 2, m.Pause)
	if errors.Is(err, writing.ErrMoved) {
		err = m.overtaken(ctx, name, m.Repo.id(next))
	}
	if err != nil {
		return m.explain(name, err)
	}
	m.Repo.placed(m.Repo.id(next))
	return nil
}

// overtaken: somebody else has moved the ref, before us or after us.
func (m *RemoteRefs) overtaken(ctx context.Context, name string, ours packfile.ID) error {
	tip, err := m.Repo.fetch(ctx, m.Server, name, true)
	if err != nil {
		return err
	}
	if tip.IsZero() {
		return writing.ErrMoved
	}
	after, err := m.Repo.Descends(ctx, tip.String(), ours.String())
	if err == nil && !after {
		err = writing.ErrMoved
	}
	return err
}

// explain makes a refusal what a person is told.
func (m *RemoteRefs) explain(name string, err error) error {
	reason := ""
	var rejected *wire.RejectedError
	var refused *wire.AuthError
	switch {
	case errors.As(err, &rejected):
		reason = rejected.Status
	case errors.As(err, &refused):
		reason = refused.Error()
	default:
		return err
	}
	var at *wire.Error
	if errors.As(err, &at) && at.Message != "" {
		reason += ": " + at.Message
	}
	try := "give a token that may push there, in COUNTERSIGN_TOKEN"
	if reason = ledger.OneLine(reason, 500); strings.Contains(reason, "workflow") { // GitHub's words where a token may not push .github/workflows
		try = "gh auth refresh -s workflow"
	}
	return &fault.Error{Kind: fault.Away, Message: fmt.Sprintf("%s refuses to move %+q: %s", m.Server, name, reason), Try: try, Cause: err}
}

// step is a pack of what a commit has that its one parent, which is old unless that is
// zero, has not.
func (r *Repo) step(ctx context.Context, old, next packfile.ID) ([]byte, error) {
	c, err := readCommit(r.objects, next)
	if err != nil {
		return nil, err
	}
	if len(c.Parents) != 1 || !old.IsZero() && c.Parents[0] != old {
		return nil, fmt.Errorf("commit %s is not exactly one commit after %s", next, old)
	}
	return r.pack(ctx, next, c.Parents[0])
}

// pack is a pack of what a commit leads to and another one does not.
func (r *Repo) pack(ctx context.Context, commit, without packfile.ID) ([]byte, error) {
	var pack bytes.Buffer
	err := r.objects.Pack(ctx, &pack, commit, without, false)
	return pack.Bytes(), err
}
