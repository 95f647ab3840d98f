package explain

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Commits are those of a repository, as Placed asks for them.
type Commits interface {
	Diff(ctx context.Context, from, to string) (patch.Patchset, error)
	// Parents are those of a commit, in the order in which it has them.
	Parents(ctx context.Context, commit string) ([]string, error)
}

// Placed reports whether a commit, or a row of at most so many that ends at it, makes
// exactly a change of the files before; from is the commit before these. In a row is no merge,
// and no file that the change does not touch. Where other lines of a file have changed since,
// the change has to give what is there, put onto what was before, and what was before, taken
// out of what is there: all of it was made, no part of it before, and nothing beside it.
// The error is one of reading.
func Placed(ctx context.Context, code Commits, want patch.Patchset, tip string, most int) (from string, ok bool, err error) {
	paths := want.Paths()
	for commit, n := tip, 1; n <= most; commit, n = from, n+1 {
		parents, err := code.Parents(ctx, commit)
		if err != nil || len(parents) == 0 || n > 1 && len(parents) > 1 {
			return "", false, err
		}
		from = parents[0]
		made, err := code.Diff(ctx, from, commit)
		beside := func(path string) bool { return !slices.Contains(paths, path) }
		if err != nil || slices.ContainsFunc(made.Paths(), beside) {
			return "", false, unlessUnfit(err)
		}
		if n > 1 {
			made, err = code.Diff(ctx, from, tip)
		}
		if err := unlessUnfit(err); err != nil {
			return "", false, err
		}
		if err == nil && makesAll(made, want) {
			return from, true, nil
		}
		if len(parents) > 1 {
			break
		}
	}
	return "", false, nil
}

// unlessUnfit is an error of reading, and nil for a difference that is no patch.
func unlessUnfit(err error) error {
	if errors.As(err, new(*patch.Error)) {
		return nil
	}
	return err
}

// makesAll reports whether what was made of some files is a change of them.
func makesAll(made, want patch.Patchset) bool {
	return slices.EqualFunc(made.Files(), want.Files(), func(m, w patch.Change) bool {
		return m.Path == w.Path && makes(w, m.Before, m.After)
	})
}
