package pipeline

import (
	"context"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// Code brings what pull requests are made of into the repository, and back.
type Code interface {
	// Head fetches the head of a pull request, with all that it reaches, and
	// returns its commit.
	Head(ctx context.Context, number int) (string, error)
	// MergeBase is the best common ancestor of a branch of the base repository,
	// as it is there now, and a commit.
	MergeBase(ctx context.Context, branch, commit string) (string, error)
	// Fetch brings a ref of the base repository. It fails unless the repository
	// then has the commit.
	Fetch(ctx context.Context, ref, commit string) error
	// Diff is what makes the second commit's tree of the first one's; "" for the
	// first is the second's first parent.
	Diff(ctx context.Context, from, to string) (patch.Patchset, error)
	// Refs are those of the repository that a side of a pull request is in.
	Refs(ctx context.Context, s forge.Side) (code.Refs, error)
}
