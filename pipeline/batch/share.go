package batch

import (
	"context"
	"io/fs"
	"sync"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// share lets a Runner use a repository that others use as well: one at a time,
// who holds mu. The trees that it serves may be read side by side.
func share(r *pipeline.Runner, mu *sync.Mutex) {
	rules := r.Rules
	r.Repo, r.Refs = sharedRepo{mu, r.Repo}, sharedRefs{mu, r.Refs}
	r.Rules = func(ctx context.Context, base string) (pipeline.Rules, error) {
		return alone(mu, func() (pipeline.Rules, error) { return rules(ctx, base) })
	}
	if r.Code != nil {
		r.Code = sharedCode{mu, r.Code}
	}
}

// alone calls with the lock held.
func alone[T any](mu *sync.Mutex, call func() (T, error)) (T, error) {
	mu.Lock()
	defer mu.Unlock()
	return call()
}

type sharedRepo struct {
	mu   *sync.Mutex
	repo code.Repository
}

func (s sharedRepo) Head(ctx context.Context) (string, error) {
	return alone(s.mu, func() (string, error) { return s.repo.Head(ctx) })
}

func (s sharedRepo) Tree(ctx context.Context, commit string) (fs.FS, error) {
	return alone(s.mu, func() (fs.FS, error) { return s.repo.Tree(ctx, commit) })
}

func (s sharedRepo) TreeID(ctx context.Context, commit string) (string, error) {
	return alone(s.mu, func() (string, error) { return s.repo.TreeID(ctx, commit) })
}

func (s sharedRepo) Index(ctx context.Context, files []patch.Change) (code.IndexState, error) {
	return alone(s.mu, func() (code.IndexState, error) { return s.repo.Index(ctx, files) })
}

func (s sharedRepo) Changed(ctx context.Context) ([]string, error) {
	return alone(s.mu, func() ([]string, error) { return s.repo.Changed(ctx) })
}

func (s sharedRepo) Descends(ctx context.Context, commit, ancestor string) (bool, error) {
	return alone(s.mu, func() (bool, error) { return s.repo.Descends(ctx, commit, ancestor) })
}

func (s sharedRepo) Drift(ctx context.Context, a, b string) (int, []string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repo.Drift(ctx, a, b)
}

type sharedRefs struct {
	mu   *sync.Mutex
	refs code.Refs
}

func (s sharedRefs) Ref(ctx context.Context, name string) (string, error) {
	return alone(s.mu, func() (string, error) { return s.refs.Ref(ctx, name) })
}

func (s sharedRefs) BuildCommit(ctx context.Context, parent string, files []patch.Change, c code.Commit) (string, error) {
	return alone(s.mu, func() (string, error) { return s.refs.BuildCommit(ctx, parent, files, c) })
}

func (s sharedRefs) CheckRef(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refs.CheckRef(ctx, name)
}

func (s sharedRefs) MoveRef(ctx context.Context, name, old, next string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refs.MoveRef(ctx, name, old, next)
}

type sharedCode struct {
	mu   *sync.Mutex
	code pipeline.Code
}

func (s sharedCode) Head(ctx context.Context, number int) (string, error) {
	return alone(s.mu, func() (string, error) { return s.code.Head(ctx, number) })
}

func (s sharedCode) MergeBase(ctx context.Context, branch, commit string) (string, error) {
	return alone(s.mu, func() (string, error) { return s.code.MergeBase(ctx, branch, commit) })
}

func (s sharedCode) Diff(ctx context.Context, from, to string) (patch.Patchset, error) {
	return alone(s.mu, func() (patch.Patchset, error) { return s.code.Diff(ctx, from, to) })
}

func (s sharedCode) Fetch(ctx context.Context, ref, commit string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code.Fetch(ctx, ref, commit)
}

func (s sharedCode) Drift(ctx context.Context, number int, a, head string) (int, []string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code.Drift(ctx, number, a, head)
}

func (s sharedCode) Refs(ctx context.Context, side forge.Side) (code.Refs, error) {
	refs, err := alone(s.mu, func() (code.Refs, error) { return s.code.Refs(ctx, side) })
	return sharedRefs{s.mu, refs}, err
}
