package gitstore

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// FirstParent returns the commit that another one was made on; of a merge, the
// one that it was merged into.
func (r *Repo) FirstParent(_ context.Context, of string) (string, error) {
	c, err := readCommit(r.objects, plumbing.NewHash(of))
	if err != nil {
		return "", err
	}
	if len(c.parents) == 0 {
		return "", fmt.Errorf("commit %s has no parent", of)
	}
	return c.parents[0].String(), nil
}
