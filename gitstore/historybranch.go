package gitstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
)

// ErrNoBranch is a branch that is not there.
var ErrNoBranch = errors.New("there is no such branch")

// CommitsSince returns the commits that a branch has and since, a commit, has
// not, as "git rev-list since..branch" does: none that is since or an ancestor of
// it. name is a branch's, a remote branch's ("origin/main"), or a ref's full
// name. A since that is not here leaves out nothing.
func (r *Repo) CommitsSince(_ context.Context, name, since string) ([]history.BranchCommit, error) {
	tip, err := r.branchTip(name)
	if err != nil {
		return nil, err
	}
	seen := map[plumbing.Hash]bool{}
	err = r.reach(plumbing.NewHash(since), seen, func(plumbing.Hash, []byte) {})
	if err != nil && !errors.Is(err, packfile.ErrMissing) {
		return nil, err
	}
	var out []history.BranchCommit
	err = r.reach(tip, seen, func(id plumbing.Hash, raw []byte) {
		_, message, _ := strings.Cut(string(raw), "\n\n")
		out = append(out, history.BranchCommit{ID: id.String(), Message: message})
	})
	return out, err
}

func (r *Repo) branchTip(name string) (plumbing.Hash, error) {
	for _, prefix := range []string{"refs/heads/", "refs/remotes/", ""} {
		ref := plumbing.ReferenceName(prefix + name)
		if ref.Validate() != nil || !strings.HasPrefix(ref.String(), "refs/") {
			continue
		}
		tip, err := r.tip(ref)
		if err != nil || !tip.IsZero() {
			return tip, err
		}
	}
	return plumbing.ZeroHash, fmt.Errorf("%w: %+q", ErrNoBranch, name)
}

// reach visits a commit and all before it, but those that were seen.
func (r *Repo) reach(from plumbing.Hash, seen map[plumbing.Hash]bool, visit func(plumbing.Hash, []byte)) error {
	for queue := []plumbing.Hash{from}; len(queue) > 0; queue = queue[1:] {
		id := queue[0]
		if id.IsZero() || seen[id] {
			continue
		}
		seen[id] = true
		raw, err := readObject(r.objects, plumbing.CommitObject, id)
		if err != nil {
			return err
		}
		c, err := parseCommit(raw)
		if err != nil {
			return fmt.Errorf("commit %s: %w", id, err)
		}
		visit(id, raw)
		queue = append(queue, c.parents...)
	}
	return nil
}
