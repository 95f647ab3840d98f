package pipeline_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// ends are the outcomes of a transaction's applies.
func (w *world) ends(tx string) (outcomes []string) {
	w.Helper()
	log := w.log(tx)
	for _, end := range ledger.Of[*ledger.ApplyComplete](log) {
		outcomes = append(outcomes, end.Outcome)
	}
	return outcomes
}

// onTop puts a commit on top of the branch's, as anybody may.
func (r *refs) onTop() {
	tip := r.tips[branch]
	tree := maps.Clone(r.trees[len(r.trees)-1])
	r.trees = append(r.trees, tree)
	r.tips[branch] = id(len(r.trees))
	r.parents[r.tips[branch]] = tip
}

// T41 A crash after the branch moved, and somebody goes on from there before the
// next apply: the change is there, and is recorded as that.
func TestT41BranchWentOn(t *testing.T) {
	w := newWorld(t)
	r, run, g := w.onBranch()
	tx := g.Transaction().TransactionID
	run.Store = &lastStore{w.store, 2}
	if _, err := run.Apply(t.Context(), g, toBranch); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	ours := r.tips[branch]
	r.onTop()
	theirs := r.tips[branch]
	run.Store = w.store
	if err := run.Supersede(t.Context(), tx, "tx_other", "it became a pull request"); err != nil { // nothing takes the place of what was begun
		t.Fatal(err)
	}
	out, err := run.Apply(t.Context(), w.gate(tx), pipeline.ApplyOptions{})
	if err != nil || out.Commit != ours || r.tips[branch] != theirs {
		t.Errorf("%+v %v, the branch is at %s", out, err, r.tips[branch])
	}
	if got := w.ends(tx); !slices.Equal(got, []string{"SUCCESS"}) {
		t.Errorf("the applies ended %v", got)
	}
	w.sound(tx, ledger.Applied)
}

// Two runs apply the same transaction, and the second is as far as it can be
// when the first does something: one apply is recorded, and both say so.
func TestT52SameApplyAtOnce(t *testing.T) {
	for what, first := range map[string]func(*pipeline.Runner, *refs, pipeline.Judgement) error{
		"moves the branch": func(_ *pipeline.Runner, r *refs, _ pipeline.Judgement) error {
			r.tips[branch] = id(len(r.trees))
			return nil
		},
		"does it all": func(run *pipeline.Runner, _ *refs, g pipeline.Judgement) error {
			_, err := run.Apply(t.Context(), g, toBranch)
			return err
		},
	} {
		w := newWorld(t)
		r, run, g := w.onBranch()
		other := w.as(bot)
		other.Refs = r
		r.before = func() {
			if err := first(other, r, g); err != nil {
				t.Error(err)
			}
		}
		out, err := run.Apply(t.Context(), g, toBranch)
		if err != nil || out.Result.Outcome != ledger.OutcomeSuccess || out.Commit != r.tips[branch] {
			t.Errorf("%s: %+v %v", what, out, err)
		}
		if got := w.ends(g.Transaction().TransactionID); !slices.Equal(got, []string{"SUCCESS"}) {
			t.Errorf("%s: the applies ended %v", what, got)
		}
	}
}

// T52 Another run begins and ends the apply after this one has looked.
func TestT52AppliedBeforeBegin(t *testing.T) {
	w := newWorld(t)
	r, run, g := w.onBranch()
	other := w.as(bot)
	other.Refs = r
	run.Refs = beforeBuild{r, func() {
		if _, err := other.Apply(t.Context(), g, toBranch); err != nil {
			t.Error(err)
		}
	}}
	out, err := run.Apply(t.Context(), g, toBranch)
	if err != nil || !out.Already || out.Commit != r.tips[branch] {
		t.Errorf("%+v %v", out, err)
	}
	if out.Learnt.Secrets == nil {
		t.Error("what this run learnt of the patch is lost")
	}
}

// beforeBuild does something before a commit is built.
type beforeBuild struct {
	*refs
	do func()
}

func (b beforeBuild) BuildCommit(ctx context.Context, parent string, files []patch.Change, c code.Commit) (string, error) {
	b.do()
	return b.refs.BuildCommit(ctx, parent, files, c)
}

// T41 The process dies when the outcome is recorded, and the working tree still
// says that an apply was begun there: the next one makes it forget.
func TestT41ClaimOfAnEndedApply(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	w.apply(g)
	run := w.as(bot)
	left := g.Transaction().TransactionID + "/apply_1"
	fatal(t, run.Worktree.Begin(left, "tx_other/apply_1"))
	if out, err := run.Apply(t.Context(), w.gate(g.Transaction().TransactionID), pipeline.ApplyOptions{DryRun: true}); err != nil || !out.Already {
		t.Errorf("%+v %v", out, err)
	}
	if begun, err := run.Worktree.Begun(); err != nil || len(begun) != 2 {
		t.Errorf("a dry run left %v (%v)", begun, err)
	}
	if out, err := run.Apply(t.Context(), w.gate(g.Transaction().TransactionID), pipeline.ApplyOptions{}); err != nil || !out.Already {
		t.Errorf("%+v %v", out, err)
	}
	if begun, err := run.Worktree.Begun(); err != nil || !slices.Equal(begun, []string{"tx_other/apply_1"}) {
		t.Errorf("begun are %v (%v)", begun, err)
	}
}

// T41 A run was killed while its apply/start was on its way, and the next one's
// reaches the ledger too late: what landed was begun here, and is finished here.
func TestT41StartLandsLate(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tx := g.Transaction().TransactionID
	run := w.as(bot)
	unlock, err := run.Worktree.Lock(t.Context())
	fatal(t, err)
	if err := run.Worktree.Begin(tx + "/apply_1"); err != nil { // by the run that was killed
		t.Fatal(err)
	}
	unlock()
	run.Store = &landsLate{Store: w.store}
	out, err := run.Apply(t.Context(), g, pipeline.ApplyOptions{})
	if err != nil || !out.Resumed {
		t.Errorf("%+v %v", out, err)
	}
	if got := w.ends(tx); !slices.Equal(got, []string{"SUCCESS"}) {
		t.Errorf("the applies ended %v", got)
	}
	w.sound(tx, ledger.Applied)
}

// landsLate writes what the first append brings, and says that somebody else did.
type landsLate struct {
	writing.Store
	done bool
}

func (s *landsLate) Append(ctx context.Context, tip string, entries ...writing.Entry) (string, error) {
	made, err := s.Store.Append(ctx, tip, entries...)
	if err == nil && !s.done {
		s.done, made, err = true, "", writing.ErrMoved
	}
	return made, err
}
