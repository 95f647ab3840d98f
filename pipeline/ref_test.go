package pipeline_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// refs keeps branches over the commits of a world. A commit that was built has
// the same id however often it is built.
type refs struct {
	*commits
	tips  map[string]string
	built map[string]string // parent and message → commit
	// before, if set, runs before the next move, once.
	before func()
}

func newRefs(c *commits) *refs {
	return &refs{commits: c, tips: map[string]string{}, built: map[string]string{}}
}

func (r *refs) Ref(_ context.Context, name string) (string, error) { return r.tips[name], nil }

func (r *refs) CheckRef(context.Context, string) error { return nil }

func (r *refs) BuildCommit(ctx context.Context, parent string, files []patch.Change, c code.Commit) (string, error) {
	key := parent + c.Author + c.Email + c.When.String() + c.Message
	if r.built[key] == "" {
		base, err := r.Tree(ctx, parent)
		if err != nil {
			return "", err
		}
		tree := maps.Clone(base.(fstest.MapFS))
		for _, f := range files {
			delete(tree, f.Path)
			if f.After != nil {
				tree[f.Path] = &fstest.MapFile{Data: f.After.Data, Mode: 0o644}
			}
		}
		r.trees = append(r.trees, tree)
		r.built[key] = id(len(r.trees))
		r.parents[r.built[key]] = parent
	}
	return r.built[key], nil
}

func (r *refs) MoveRef(_ context.Context, name, old, next string) error {
	if before := r.before; before != nil {
		r.before = nil
		before()
	}
	if r.tips[name] != old {
		return writing.ErrMoved
	}
	r.tips[name] = next
	return nil
}

const branch = "refs/heads/fixes"

var toBranch = pipeline.ApplyOptions{To: policy.ToBranch, Branch: "fixes"}

func (w *world) onBranch() (*refs, *pipeline.Runner, pipeline.Judgement) {
	w.Helper()
	g := w.approved()
	r := newRefs(w.repo)
	run := w.as(bot)
	run.Refs = r
	return r, run, g
}

// readTree returns the files of a commit.
func (w *world) readTree(commit string) map[string]string {
	w.Helper()
	tree, err := w.repo.Tree(w.Context(), commit)
	fatal(w, err)
	out := map[string]string{}
	for name := range tree.(fstest.MapFS) {
		data, err := fs.ReadFile(tree, name)
		fatal(w, err)
		out[name] = string(data)
	}
	return out
}

func TestApplyToBranch(t *testing.T) {
	w := newWorld(t)
	r, run, g := w.onBranch()
	tx := g.Transaction().TransactionID
	out, err := run.Apply(t.Context(), g, toBranch)
	if err != nil || out.Result.Outcome != ledger.OutcomeSuccess || out.Commit != r.tips[branch] || out.Commit == "" {
		t.Fatalf("%+v %v", out, err)
	}
	if got := w.readTree(out.Commit); !maps.Equal(got, fixed) {
		t.Errorf("the branch holds %v", got)
	}
	w.holds(base) // the working tree is not touched
	w.sound(tx, ledger.Applied)
	if v, err := run.Validate(t.Context(), tx); err != nil || !v.Completed {
		t.Errorf("%+v %v", v, err)
	}
}

// T40 T64 The branch moves between the check and the effect: the lost race is
// recorded, and the change goes onto the new tip.
func TestT40BranchMovesUnderUs(t *testing.T) {
	w := newWorld(t)
	r, run, g := w.onBranch()
	r.tips[branch] = id(1)
	r.before = func() {
		more := maps.Clone(base)
		more["unrelated"] = "x\n"
		r.commit(more)
		r.tips[branch] = id(len(r.trees))
	}
	out, err := run.Apply(t.Context(), g, toBranch)
	if err != nil || out.Result.Outcome != ledger.OutcomeSuccess {
		t.Fatalf("%+v %v", out, err)
	}
	if got := w.readTree(r.tips[branch]); got["unrelated"] != "x\n" || got["greet.txt"] != fixed["greet.txt"] {
		t.Errorf("the branch holds %v", got)
	}
	w.sound(g.Transaction().TransactionID, ledger.Applied)
}

// T40 The branch moves and takes a touched file along: nothing is written.
func TestT40BranchChangesTheFile(t *testing.T) {
	w := newWorld(t)
	r, run, g := w.onBranch()
	r.tips[branch] = id(1)
	r.before = func() {
		other := maps.Clone(base)
		other["greet.txt"] = "somebody else's\n"
		r.commit(other)
		r.tips[branch] = id(len(r.trees))
	}
	out, err := run.Apply(t.Context(), g, toBranch)
	var superseded *pipeline.SupersededError
	if !errors.As(err, &superseded) || out.Result.Outcome != ledger.OutcomeRefused {
		t.Fatalf("%+v %v", out, err)
	}
	if got := w.readTree(r.tips[branch]); got["greet.txt"] != "somebody else's\n" {
		t.Errorf("the branch holds %v", got)
	}
	w.sound(g.Transaction().TransactionID, ledger.Superseded)
}

// lastStore fails the nth append after the intent.
type lastStore struct {
	writing.Store
	n int
}

func (s *lastStore) Append(ctx context.Context, tip string, entries ...writing.Entry) (string, error) {
	if s.n--; s.n == 0 {
		return "", errDisk
	}
	return s.Store.Append(ctx, tip, entries...)
}

// T41 T64 A crash after the branch moved, and one before: the next Apply ends
// with one commit, whatever target it is given.
func TestT41CrashAroundBranch(t *testing.T) {
	for _, movedBefore := range []bool{true, false} {
		w := newWorld(t)
		r, run, g := w.onBranch()
		run.Store = &lastStore{w.store, 2}
		if !movedBefore {
			r.before = func() { panic("power cut") }
		}
		died(func() {
			if _, err := run.Apply(t.Context(), g, toBranch); !errors.Is(err, errDisk) {
				t.Errorf("%v", err)
			}
		})
		first := r.tips[branch]
		if (first != "") != movedBefore {
			t.Fatalf("the branch is %q", first)
		}
		run.Store = w.store
		out, err := run.Apply(t.Context(), w.gate(g.Transaction().TransactionID), pipeline.ApplyOptions{})
		if err != nil || out.Result.Outcome != ledger.OutcomeSuccess || movedBefore && r.tips[branch] != first {
			t.Errorf("%+v %v, the branch is %s, was %s", out, err, r.tips[branch], first)
		}
		w.holds(base)
		w.sound(g.Transaction().TransactionID, ledger.Applied)
	}
}

func TestCommitWords(t *testing.T) {
	w := newWorld(t)
	r, run, g := w.onBranch()
	out, err := run.Apply(t.Context(), g, pipeline.ApplyOptions{To: policy.ToRef})
	if err != nil || r.tips["refs/agent/applied/"+g.Transaction().TransactionID] != out.Commit {
		t.Fatalf("%+v %v", out, err)
	}
	for key := range r.built {
		for _, want := range []string{"Countersign-Transaction: tx_", "Countersign-Patch: ", "Approved-by: "} {
			if strings.Count(key, want) != 1 {
				t.Errorf("the commit says %q", key)
			}
		}
	}
}

// A checkout is the branch that is checked out, with an index.
type checkout struct {
	*refs
	staged int
	locked error
}

func (c *checkout) Branch(context.Context) (string, error) { return branch, nil }

func (c *checkout) MoveBranch(ctx context.Context, name, old, next string) error {
	if c.tips[name] == next {
		return nil
	}
	return c.MoveRef(ctx, name, old, next)
}

func (c *checkout) Stage(context.Context, []patch.Change) error {
	c.staged++
	return c.locked
}

// T40 T41 Files are committed once, whatever crashes, and never onto a branch that has moved:
// then they stay as they were written, and the record says that no commit was made. A commit that
// the index could not follow is made.
func TestT41CommitOfFiles(t *testing.T) {
	for _, what := range []string{"a crash", "it moved", "the index is locked"} {
		w := newWorld(t)
		w.repo.onLine = true
		r, run, g := w.onBranch()
		tx := g.Transaction().TransactionID
		base, err := w.repo.Head(t.Context())
		fatal(t, err)
		r.tips[branch] = base
		to := &checkout{refs: r}
		switch what {
		case "a crash":
			run.Store = &lastStore{w.store, 2}
		case "it moved":
			r.before = func() { r.tips[branch] = "moved" }
		default:
			to.locked = errDisk
		}
		out, err := run.Apply(t.Context(), g, pipeline.ApplyOptions{Checkout: to})
		var failed *effect.UncommittedError
		switch what {
		case "it moved":
			if !errors.As(err, &failed) || failed.Unstaged != nil || out.Commit != "" || r.tips[branch] != "moved" || to.staged != 0 {
				t.Errorf("%s: %+v %v, %+v", what, out, err, to)
			}
		case "the index is locked":
			if !errors.As(err, &failed) || !slices.Equal(failed.Unstaged, g.Transaction().Pointers.Proposal.TargetFiles) || out.Commit != r.tips[branch] || out.Commit == base {
				t.Errorf("%s: %+v %v, %+v", what, out, err, to)
			}
		default:
			if !errors.Is(err, errDisk) {
				t.Fatalf("%s: %v", what, err)
			}
			run.Store = w.store
			out, err = run.Apply(t.Context(), w.gate(tx), pipeline.ApplyOptions{Checkout: to})
			if err != nil || !out.Resumed || out.Commit != r.tips[branch] || out.Commit == base || out.Branch != branch {
				t.Errorf("%s: %+v %v, %+v", what, out, err, to)
			}
			if got := w.readTree(out.Commit); !maps.Equal(got, fixed) {
				t.Errorf("%s: the commit holds %v", what, got)
			}
		}
		w.holds(fixed)
		w.sound(tx, ledger.Applied)
		if v, err := run.Validate(t.Context(), tx); err != nil || !v.Completed {
			t.Errorf("%s: %+v %v", what, v, err)
		}
	}
}
