package gitstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// CommitAll commits everything in the working tree, as "git add -A" and "git
// commit" do, and returns the commit id.
func (r *Repo) CommitAll(message, author string, when time.Time) (string, error) {
	w, err := r.git.Worktree()
	if err != nil {
		return "", fmt.Errorf("opening the working tree: %w", err)
	}
	if err := w.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		return "", fmt.Errorf("adding files: %w", err)
	}
	who := &object.Signature{Name: author, Email: author + "@localhost", When: when}
	h, err := w.Commit(message, &git.CommitOptions{Author: who})
	if err != nil {
		return "", fmt.Errorf("committing: %w", err)
	}
	return h.String(), nil
}

// Descends reports whether ancestor is commit or one of its ancestors; one that
// the repository does not have is not.
func (r *Repo) Descends(_ context.Context, commit, ancestor string) (bool, error) {
	if commit == ancestor {
		return true, nil
	}
	from, to := plumbing.NewHash(commit), plumbing.NewHash(ancestor)
	if _, err := readCommit(r.objects, from); err != nil {
		return false, err
	}
	_, err := readCommit(r.objects, to)
	if errors.Is(err, packfile.ErrMissing) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ok, err := descends(r.objects, from, to)
	if err != nil {
		err = fmt.Errorf("walking from %s: %w", commit, err)
	}
	return ok, err
}
