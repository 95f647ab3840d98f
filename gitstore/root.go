package gitstore

import (
	"context"
	"errors"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/go-git/go-git/v5/plumbing"
)

// Root returns the commit that a commit's history began with, by first parents.
// A history that is cut off before is a *CutOffError.
func (r *Repo) Root(_ context.Context, commit string) (string, error) {
	id := plumbing.NewHash(commit)
	for {
		c, err := readCommit(r.objects, id)
		if errors.Is(err, packfile.ErrMissing) {
			return "", &CutOffError{id.String()}
		}
		if err != nil {
			return "", err
		}
		if len(c.parents) == 0 {
			return id.String(), nil
		}
		id = c.parents[0]
	}
}
