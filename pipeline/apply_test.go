package pipeline_test

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// denied fails the test unless an apply was refused for a denial, and nothing
// was written.
func (w *world) denied(out pipeline.ApplyOutcome, err error) {
	w.Helper()
	var denied *pipeline.DeniedError
	if !errors.As(err, &denied) || out.Result.Outcome != ledger.OutcomeRefused {
		w.Errorf("applied %+v: %v", out, err)
	}
	w.holds(base)
}

// TestT03DenialBeforeApply: a denial between gate and apply wins.
func TestT03DenialBeforeApply(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tx := g.Transaction().TransactionID
	w.says(bob, ledger.Deny, tx)
	w.denied(w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{}))
	w.sound(tx, ledger.Denied)
	w.denied(w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{DryRun: true}))
}

// meddling lets somebody else write right before its own nth Append.
type meddling struct {
	writing.Store
	n  int
	do func()
}

func (m *meddling) Append(ctx context.Context, tip string, entries ...writing.Entry) (string, error) {
	if m.n--; m.n == 0 {
		m.do()
	}
	return m.Store.Append(ctx, tip, entries...)
}

// TestT52DenialDuringApply: a denial that arrives while apply is about to record
// its intent makes it look again.
func TestT52DenialDuringApply(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tx := g.Transaction().TransactionID
	r := w.as(bot)
	r.Store = &meddling{Store: w.store, n: 1, do: func() { w.says(bob, ledger.Deny, tx) }}
	w.denied(r.Apply(t.Context(), g, pipeline.ApplyOptions{}))
	w.sound(tx, ledger.Denied)
}

// TestT52DenialDuringApproval: of an approval and a denial at once the denial
// wins, whichever is first.
func TestT52DenialDuringApproval(t *testing.T) {
	for _, late := range []ledger.Decision{ledger.Approve, ledger.Deny} {
		w := newWorld(t)
		tx := w.review().ID
		w.gate(tx)
		early := map[ledger.Decision]ledger.Decision{ledger.Approve: ledger.Deny, ledger.Deny: ledger.Approve}[late]
		r := w.as(ada)
		r.Store = &meddling{Store: w.store, n: 1, do: func() { w.says(bob, early, tx) }}
		_, err := r.Decide(t.Context(), tx, pipeline.Ruling{Decision: late, Kind: "local"})
		var denied *pipeline.DeniedError
		if (late == ledger.Approve) != errors.As(err, &denied) {
			t.Errorf("%s after %s: %v", late, early, err)
		}
		if g := w.gate(tx); g.Verdict.State != approval.Denied {
			t.Errorf("%s after %s: %+v", late, early, g.Verdict)
		}
		w.sound(tx, ledger.Denied)
	}
}

// TestT03DenialSticks: the same change, however it is written, is refused in
// every later review.
func TestT03DenialSticks(t *testing.T) {
	w := newWorld(t)
	w.says(ada, ledger.Deny, w.review().ID)
	tip := w.tip()
	otherContext := strings.Replace(fix, "@@ -1,3 +1,3 @@\n one\n-hello\n+hello, world\n three\n", "@@ -2 +2 @@\n-hello\n+hello, world\n", 1)
	if otherContext == fix {
		t.Fatal("the diff is the same")
	}
	for _, diff := range []string{fix, otherContext} {
		for _, dryRun := range []bool{false, true} {
			out, err := review.Run(t.Context(), w.as(bob), w.input(diff), dryRun)
			var denied *pipeline.DeniedError
			if !errors.As(err, &denied) || out.ID != "" || w.tip() != tip {
				t.Errorf("dry run %v: %+v %v", dryRun, out, err)
			}
		}
	}
	if out, err := review.Run(t.Context(), w.as(bob), w.input(strings.ReplaceAll(fix, "hello, world", "hello, you")), false); err != nil {
		t.Errorf("another change: %+v %v", out, err)
	}
}

// TestT03DeniedInAnother: two transactions propose one patch; the denial of one
// stops the other, approved as it is.
func TestT03DeniedInAnother(t *testing.T) {
	w := newWorld(t)
	first := w.approved()
	w.repo.commit(base) // the same files in another commit
	second := w.review().ID
	if second == first.Transaction().TransactionID {
		t.Fatal("one transaction")
	}
	w.says(bob, ledger.Deny, second)
	w.denied(w.as(bot).Apply(t.Context(), first, pipeline.ApplyOptions{}))
	if g := w.gate(first.Transaction().TransactionID); g.Verdict.State != approval.Denied || !g.Recorded {
		t.Errorf("%+v", g.Verdict)
	}
	w.sound(first.Transaction().TransactionID, ledger.Denied)
	if v, err := w.as(bot).Validate(t.Context(), second); err != nil || !v.Report.OK {
		t.Errorf("%+v %v", v, err)
	}
}

// TestT40BaseChanged: an approved change whose base is gone is superseded; one
// whose files are as they were is not.
func TestT40BaseChanged(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tx := g.Transaction().TransactionID
	moved := map[string]string{"greet.txt": "one\nhello\nfour\n", "old.txt": "old\n", "other.txt": "other\n"}
	w.repo.commit(moved)
	w.write(moved)
	tip := w.tip()

	out, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{DryRun: true})
	var superseded *pipeline.SupersededError
	if !errors.As(err, &superseded) || out.Result.Outcome != ledger.OutcomeRefused || w.tip() != tip {
		t.Errorf("dry run: %+v %v", out, err)
	}
	out, err = w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{})
	if !errors.As(err, &superseded) || !reflect.DeepEqual(superseded.Files, []string{"greet.txt"}) || out.Result.Outcome != ledger.OutcomeRefused {
		t.Errorf("%+v %v", out, err)
	}
	w.sound(tx, ledger.Superseded)
	w.holds(moved)
	tip = w.tip()
	if out, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &superseded) || out.Result.Outcome != ledger.OutcomeRefused || w.tip() != tip {
		t.Errorf("again: %+v %v", out, err)
	}
	w.repo.commit(base)
	w.write(base)
	if out, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &superseded) || out.Result.Outcome != ledger.OutcomeRefused {
		t.Errorf("on the old base again: %+v %v", out, err)
	}
	w.holds(base)
}

func TestT40AnotherFileChanged(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	w.repo.commit(map[string]string{"greet.txt": base["greet.txt"], "old.txt": "old\n", "other.txt": "changed\n"})
	w.write(map[string]string{"other.txt": "mine\n"})
	w.apply(g)
	w.holds(map[string]string{"greet.txt": fixed["greet.txt"], "new/file.txt": "new\n", "other.txt": "mine\n"})
	w.sound(g.Transaction().TransactionID, ledger.Applied)
}

// TestT40Dirty: a file on disk that is not as committed is not overwritten.
func TestT40Dirty(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	w.write(map[string]string{"greet.txt": "mine\n"})
	tip := w.tip()
	for _, dryRun := range []bool{true, false} {
		out, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{DryRun: dryRun})
		var dirty *effect.DirtyError
		if !errors.As(err, &dirty) || out.Result.Outcome != ledger.OutcomeRefused || out.Result.DryRun != dryRun || w.tip() != tip {
			t.Errorf("dry run %v: %+v %v", dryRun, out, err)
		}
	}
	w.write(base)
	w.apply(g)
	w.holds(fixed)
}

// TestDryRun predicts the result and writes neither files nor ledger.
func TestDryRun(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tip := w.tip()
	dry, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{DryRun: true})
	if err != nil || !dry.Result.DryRun || w.tip() != tip {
		t.Errorf("%+v %v", dry, err)
	}
	w.holds(base)
	real := w.apply(g)
	dry.Result.DryRun = false
	if !reflect.DeepEqual(dry.Result, real.Result) {
		t.Errorf("predicted %+v, got %+v", dry.Result, real.Result)
	}
	line, err := canon.Line(real.Result)
	fatal(t, err)
	snap := w.ledger()
	stored, err := fs.ReadFile(snap.Tree, ledger.Dir(g.Transaction().TransactionID)+"/"+ledger.ResultFile)
	if err != nil || string(stored) != string(line) {
		t.Errorf("stored %q (%v), want %q", stored, err, line)
	}
}

// TestT64ApplyTwice: an applied transaction is left alone, whatever became of
// the files since.
func TestT64ApplyTwice(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	first := w.apply(g)
	mine := map[string]string{"greet.txt": "mine\n"}
	w.write(mine)
	tip := w.tip()
	for _, dryRun := range []bool{false, true} {
		again, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{DryRun: dryRun})
		if err != nil || !again.Already || !reflect.DeepEqual(again.Result, first.Result) || w.tip() != tip {
			t.Errorf("dry run %v: %+v %v", dryRun, again, err)
		}
	}
	w.holds(map[string]string{"greet.txt": "mine\n", "new/file.txt": "new\n", "other.txt": "other\n"})
}

// dying is a working tree whose writer dies after n files.
type dying struct {
	effect.Tree
	n int
}

func (d dying) Write(files []patch.Change) []ledger.Operation {
	d.Tree.Write(files[:d.n])
	panic("power cut")
}

func died(do func()) (died bool) {
	defer func() { died = recover() == "power cut" }()
	do()
	return
}

// TestT41CrashDuringApply: the intent is recorded, some files are written, and
// the next Apply finishes under the same apply_id.
func TestT41CrashDuringApply(t *testing.T) {
	for n := range 4 {
		w := newWorld(t)
		g := w.approved()
		tx := g.Transaction().TransactionID
		r := w.as(bot)
		r.Worktree = dying{r.Worktree, n}
		if !died(func() { _, _ = r.Apply(t.Context(), g, pipeline.ApplyOptions{}) }) {
			t.Fatal("it lives")
		}
		w.sound(tx, ledger.Proposed)

		w.repo.commit(fixed) // even if somebody commits what is there
		out := w.apply(w.gate(tx))
		if out.Already || !out.Resumed || out.Result.Outcome != ledger.OutcomeSuccess || out.Result.Summary.Succeeded != 3 {
			t.Errorf("after %d files: %+v", n, out.Result)
		}
		w.holds(fixed)
		w.sound(tx, ledger.Applied)
		log := w.log(tx)
		if starts := ledger.Of[*ledger.ApplyStart](log); len(starts) != 1 {
			t.Errorf("after %d files: %d starts", n, len(starts))
		}
		w.validate(tx)
	}
}

// TestT41EditAfterCrash: what somebody changed since is not overwritten.
func TestT41EditAfterCrash(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	r := w.as(bot)
	r.Worktree = dying{r.Worktree, 0}
	died(func() { _, _ = r.Apply(t.Context(), g, pipeline.ApplyOptions{}) })
	mine := map[string]string{"greet.txt": "mine\n", "old.txt": "old\n", "other.txt": "other\n"}
	w.write(mine)
	out, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{})
	var dirty *effect.DirtyError
	if !errors.As(err, &dirty) || out.Result.Outcome != ledger.OutcomeRefused {
		t.Errorf("%+v %v", out, err)
	}
	w.holds(mine)
}

// TestT03DenialAfterCrash: a denial ends an apply that was cut off: what is on
// disk is recorded, nothing more is written, and the transaction is closed.
func TestT03DenialAfterCrash(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tx := g.Transaction().TransactionID
	r := w.as(bot)
	r.Worktree = dying{r.Worktree, 0}
	died(func() { _, _ = r.Apply(t.Context(), g, pipeline.ApplyOptions{}) })
	w.says(bob, ledger.Deny, tx)
	w.sound(tx, ledger.Proposed) // the apply has no end yet
	w.denied(w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{}))
	w.sound(tx, ledger.Denied)
	if g := w.gate(tx); !g.Transaction().Closed {
		t.Error("it is still open")
	}
}

// failingOnce is a store that cannot be written after n appends; with lost, the
// entry is there all the same.
type failingOnce struct {
	writing.Store
	n    int
	lost bool
}

var errDisk = errors.New("no space left on device")

func (f *failingOnce) Append(ctx context.Context, tip string, entries ...writing.Entry) (string, error) {
	if f.n--; f.n == -1 {
		if f.lost {
			_, _ = storetest.Append(f.Store, func(fs.FS) (map[string][]byte, error) { return entries[0].Files, nil })
		}
		return "", errDisk
	}
	got, err := f.Store.Append(ctx, tip, entries...)
	if errors.Is(err, writing.ErrMoved) {
		f.n++
	}
	return got, err
}

// TestT61StoreFails: whatever append fails, the error is told, and running the
// stage again ends as if nothing had happened.
func TestT61StoreFails(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for n := range 2 {
			w := newWorld(t)
			g := w.approved()
			r := w.as(bot)
			r.Store = &failingOnce{w.store, n, lost}
			if out, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.Is(err, errDisk) {
				t.Errorf("append %d, lost %v: %+v %v", n, lost, out, err)
			}
			out := w.apply(w.gate(g.Transaction().TransactionID))
			if out.Result.Outcome != ledger.OutcomeSuccess {
				t.Errorf("append %d, lost %v: %+v", n, lost, out)
			}
			w.holds(fixed)
			w.sound(g.Transaction().TransactionID, ledger.Applied)
		}
		w := newWorld(t)
		r := w.as(bot)
		r.Store = &failingOnce{w.store, 0, lost}
		if out, err := review.Run(t.Context(), r, w.input(fix), false); !errors.Is(err, errDisk) {
			t.Errorf("review, lost %v: %+v %v", lost, out, err)
		}
		if again := w.review(); again.Known != lost {
			t.Errorf("review, lost %v: %+v", lost, again)
		}
	}
}

// TestT06StoredPatchChanged: an approval covers bytes; others in their place are
// refused.
func TestT06StoredPatchChanged(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tx := g.Transaction()
	if _, err := storetest.Append(w.store, func(fs.FS) (map[string][]byte, error) {
		return map[string][]byte{ledger.Dir(tx.TransactionID) + "/" + ledger.PatchFile(tx.PatchID()): []byte(strings.ReplaceAll(fix, "world", "mars"))}, nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		out, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{DryRun: dryRun})
		var corrupt *ledger.CorruptError
		if !errors.As(err, &corrupt) || out.Result.Outcome != ledger.OutcomeRefused {
			t.Errorf("%+v %v", out, err)
		}
	}
	w.holds(base)
	if v, err := w.as(bot).Validate(t.Context(), tx.TransactionID); err != nil || v.Report.OK || v.Report.Violations[0].RuleID != "L5" {
		t.Errorf("%+v %v", v, err)
	}
}

// TestT03IndexEntryGone: a recorded denial that the index has lost is found.
func TestT03IndexEntryGone(t *testing.T) {
	w := newWorld(t)
	r := w.review()
	w.says(ada, ledger.Deny, r.ID)
	forgetful := &storetest.Memory{}
	for _, e := range w.store.Entries() {
		for name := range e.Files {
			if strings.HasPrefix(name, "denied/") {
				delete(e.Files, name)
			}
		}
		if _, err := storetest.Append(forgetful, func(fs.FS) (map[string][]byte, error) { return e.Files, nil }); err != nil {
			t.Fatal(err)
		}
	}
	w.store = forgetful
	var corrupt *ledger.CorruptError
	if _, err := w.as(bot).Gate(t.Context(), r.ID); !errors.As(err, &corrupt) {
		t.Errorf("gate: %v", err)
	}
	if out, err := review.Run(t.Context(), w.as(bot), w.input(fix), false); err == nil {
		t.Errorf("the denied patch is reviewed again: %+v", out)
	}
	if v, err := w.as(bot).Validate(t.Context(), r.ID); err != nil || v.Report.OK || v.Report.Violations[0].RuleID != "L11" {
		t.Errorf("%+v %v", v, err)
	}
}

// restless is a ledger in which others are always faster.
type restless struct{ writing.Store }

func (restless) Append(context.Context, string, ...writing.Entry) (string, error) {
	return "", writing.ErrMoved
}

func TestT52OthersAlwaysFaster(t *testing.T) {
	w := newWorld(t)
	r := w.as(bot)
	r.Store = restless{w.store}
	pauses := 0
	r.Pause = func(_ context.Context, attempt int) {
		if pauses++; attempt != pauses {
			t.Errorf("pause %d for attempt %d", pauses, attempt)
		}
	}
	done, err := review.Run(t.Context(), r, w.input(fix), false)
	if err == nil || !strings.Contains(err.Error(), "other writers were faster") || pauses != 50 || done.Learnt.Secrets == nil {
		t.Errorf("%d pauses: %v, learnt %v", pauses, err, done.Learnt)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.Pause = func(context.Context, int) { cancel() }
	if _, err := review.Run(ctx, r, w.input(fix), false); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestNoWorktree(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	r := w.as(bot)
	r.Worktree = nil
	if _, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.Is(err, pipeline.ErrNoWorktree) {
		t.Errorf("%v", err)
	}
}

// TestFailedApply: what could not be written is told, and may be tried again.
func TestFailedApply(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tx := g.Transaction().TransactionID
	r := w.as(bot)
	r.Worktree = full{r.Worktree}
	out, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{})
	if err != nil || out.Result.Outcome != ledger.OutcomeFailed {
		t.Errorf("%+v %v", out, err)
	}
	w.sound(tx, ledger.Failed)
	w.holds(base)
	w.apply(w.gate(tx))
	w.holds(fixed)
	w.sound(tx, ledger.Applied)
	w.validate(tx)
}

// full is a working tree on a disk without space.
type full struct{ effect.Tree }

func (full) Write(files []patch.Change) []ledger.Operation {
	var ops []ledger.Operation
	for _, f := range files {
		ops = append(ops, ledger.Operation{Op: "modify", Path: f.Path, Status: ledger.StatusError, Error: "cannot write: " + errDisk.Error()})
	}
	return ops
}

// lying is a working tree on which something else is found than was written.
type lying struct{ effect.Tree }

func (l lying) Write(files []patch.Change) []ledger.Operation {
	ops := l.Tree.Write(files)
	ops[0].Status, ops[0].AfterHash, ops[0].BytesWritten, ops[0].Error = ledger.StatusError, nil, 0, effect.Mismatch
	return ops
}

// T45 A file that is not what was written fails the whole apply, and every file
// is listed with what became of it.
func TestT45Mismatch(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	r := w.as(bot)
	r.Worktree = lying{r.Worktree}
	out, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{})
	if err != nil || out.Result.Outcome != ledger.OutcomeFailed || len(out.Result.Operations) != 3 || out.Result.Summary.Succeeded != 2 {
		t.Errorf("%+v %v", out, err)
	}
	w.sound(g.Transaction().TransactionID, ledger.Failed)
}
