package gitstore

import (
	"fmt"
	"time"

	"github.com/go-git/go-git/v5"
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
