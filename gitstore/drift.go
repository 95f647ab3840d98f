package gitstore

import (
	"context"
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/code"
)

// Drift returns how many commits only one of two commits leads to, as "git
// rev-list --count a...b" does, and the paths of the files in which their trees
// differ. A history or a tree that is not here as far as it takes is an error:
// of a history, a *CutOffError. Where clocks were wrong, commits of both may be
// counted as well, and none is left out.
func (r *Repo) Drift(ctx context.Context, a, b string) (commits int, files []string, err error) {
	from, to := r.name(a), r.name(b)
	for _, id := range []string{a, b} {
		if !r.has(r.id(id)) {
			return 0, nil, fmt.Errorf("comparing %s with %s: %w", a, b, &CutOffError{id})
		}
	}
	apart, err := r.listed(ctx, from+"..."+to)
	if err != nil {
		return 0, nil, fmt.Errorf("comparing %s with %s: %w", a, b, err)
	}
	if err = r.hold(ctx, from+"..."+to); err == nil {
		var differ []code.PathChange
		if differ, err = r.Paths(ctx, from, to); len(differ) > maxDiffPaths {
			err = fmt.Errorf("more than %d files differ", maxDiffPaths)
		}
		for _, d := range differ {
			files = append(files, d.Path)
		}
	}
	if err != nil {
		return 0, nil, fmt.Errorf("comparing %s with %s: %w", a, b, err)
	}
	return len(apart), files, nil
}
