package pipeline_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// moveOn commits a change of one file that no patch of these tests touches.
func (w *world) moveOn(name string) {
	w.Helper()
	files := maps.Clone(w.readTree(id(len(w.repo.trees))))
	files[name] += "more\n"
	w.repo.commit(files)
	w.write(map[string]string{name: files[name]})
}

func bounded(commits int) *policy.Drift { return &policy.Drift{Commits: &commits} }

func driftIn(v approval.Verdict) string {
	if v.Drift == nil {
		return "nothing"
	}
	d := *v.Drift
	return fmt.Sprintf("%d %d %d %s %s", d.Commits, d.Files, d.Beside, strings.Join(d.Names, ","), d.Unknown)
}

// TestDriftTold: an approval survives a base that moves elsewhere, and people are
// told what moved.
func TestDriftTold(t *testing.T) {
	w := newWorld(t)
	g := w.approved()
	tx := g.Transaction().TransactionID
	if got := driftIn(g.Verdict); got != "0 0 0  " {
		t.Errorf("at once: %s", got)
	}
	w.moveOn("other.txt")
	w.moveOn("deep/down.txt")
	if g = w.gate(tx); driftIn(g.Verdict) != "2 2 1 other.txt " || g.Verdict.State != approval.Approved {
		t.Errorf("%s, %s", driftIn(g.Verdict), g.Verdict.State)
	}
	if got := driftIn(w.history(tx).Verdict); got != "2 2 1 other.txt " {
		t.Errorf("show: %s", got)
	}
	w.apply(g)
	if got := driftIn(w.history(tx).Verdict); got != "nothing" { // nobody had to know, and nobody has written it down
		t.Errorf("after it was applied: %s", got)
	}
}

// TestDriftBounded: under a bound an approval is out of date when the base has moved
// too far, the next one is of the base as it is, and what was measured is recorded.
func TestDriftBounded(t *testing.T) {
	for name, bound := range map[string]*policy.Drift{"commits": bounded(1), "same directory": {SameDirectory: policy.Ask}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.policy.Approvals.Drift = bound
			g := w.approved()
			tx := g.Transaction().TransactionID
			w.moveOn("deep/down.txt")
			if g = w.gate(tx); g.Verdict.State != approval.Approved {
				t.Fatalf("after one commit elsewhere: %+v", g.Verdict)
			}
			w.moveOn("other.txt")
			out, err := w.as(bot).Apply(t.Context(), g, pipeline.ApplyOptions{}) // with a verdict from before
			var pending *pipeline.PendingError
			if !errors.As(err, &pending) || out.Result.Outcome != ledger.OutcomeRefused {
				t.Fatalf("%+v %v", out.Result, err)
			}
			w.sound(tx, ledger.Proposed)
			if g = w.gate(tx); g.Verdict.State != approval.Pending || driftIn(g.Verdict) != "2 2 1 other.txt " || !strings.Contains(g.Verdict.Decisions[0].Reason, "approve again") {
				t.Fatalf("%s %+v", driftIn(g.Verdict), g.Verdict)
			}
			w.sound(tx, ledger.Awaiting)
			w.says(ada, ledger.Approve, tx)
			if g = w.gate(tx); g.Verdict.State != approval.Approved || driftIn(g.Verdict) != "0 0 0  " {
				t.Fatalf("%s %+v", driftIn(g.Verdict), g.Verdict)
			}
			w.apply(g)
			w.sound(tx, ledger.Applied)
			w.moveOn("deep/down.txt")
			w.moveOn("other.txt")
			if g = w.history(tx); g.Verdict.State != approval.Approved || driftIn(g.Verdict) != "0 0 0  " { // of then
				t.Errorf("later: %s %+v", driftIn(g.Verdict), g.Verdict)
			}
			if n := len(g.Log().Artifacts(approval.KindDrift)); n != 1 {
				t.Errorf("%d artifacts", n)
			}
		})
	}
}

// TestDriftUnknown: a commit that is not here is said to be unknown, and does not
// count under a bound.
func TestDriftUnknown(t *testing.T) {
	w := newWorld(t)
	w.repo.commit(base)
	g := w.approved() // on the second commit
	tx := g.Transaction().TransactionID
	w.repo.lost = id(2)
	w.moveOn("other.txt")
	if g = w.gate(tx); g.Verdict.State != approval.Approved || g.Verdict.Drift == nil || !strings.Contains(g.Verdict.Drift.Unknown, "no commit") {
		t.Errorf("%+v", g.Verdict)
	}
	w.policy.Approvals.Drift = &policy.Drift{SameDirectory: policy.Ask}
	if g = w.gate(tx); g.Verdict.State != approval.Pending || !strings.Contains(g.Verdict.Decisions[0].Reason, "cannot be told") {
		t.Errorf("%+v", g.Verdict)
	}
	w.says(ada, ledger.Deny, tx)
	w.sound(tx, ledger.Denied) // a denial has no age
}

// TestDriftOfABranch: what is measured before an apply to a branch is how far that
// branch is from what was approved, unless it begins where the change was reviewed.
func TestDriftOfABranch(t *testing.T) {
	for _, c := range []struct {
		name string
		tip  string
		ok   bool
	}{{"a new branch", "", true}, {"a branch at HEAD", id(3), true}, {"a branch elsewhere", id(2), false}} {
		w := newWorld(t)
		w.repo.onLine, w.policy.Approvals.Drift = true, bounded(0)
		tx := w.review().ID
		w.moveOn("other.txt")
		w.moveOn("other.txt")
		w.says(ada, ledger.Approve, tx)
		g := w.gate(tx)
		r, run := newRefs(w.repo), w.as(bot)
		run.Refs = r
		if c.tip != "" {
			r.tips[branch] = c.tip
		}
		out, err := run.Apply(t.Context(), g, toBranch)
		if (err == nil) != c.ok || (r.tips[branch] == out.Commit && out.Commit != "") != c.ok {
			t.Errorf("%s: %+v %v", c.name, out.Result, err)
		}
		if g := w.history(tx); c.ok && g.Verdict.State != approval.Approved {
			t.Errorf("%s: afterwards %+v", c.name, g.Verdict)
		}
	}
}

// TestDriftResumed: an apply that was cut off is finished on the base that it was
// begun on, however far that is by now.
func TestDriftResumed(t *testing.T) {
	w := newWorld(t)
	w.repo.onLine, w.policy.Approvals.Drift = true, bounded(0)
	r, run, g := w.onBranch()
	tx := g.Transaction().TransactionID
	r.before = func() { panic("killed") }
	func() {
		defer func() { recover() }()
		run.Apply(t.Context(), g, toBranch)
	}()
	w.sound(tx, ledger.Proposed)
	w.repo.commit(base)
	if g = w.gate(tx); g.Verdict.State != approval.Approved {
		t.Fatalf("%+v", g.Verdict)
	}
	if out, err := run.Apply(t.Context(), g, toBranch); err != nil || !out.Resumed {
		t.Fatalf("%+v %v", out, err)
	}
	w.sound(tx, ledger.Applied)
}

// TestDriftOfAPull: of a pull request the drift is that of its head, which every
// new comment is about as it is.
func TestDriftOfAPull(t *testing.T) {
	w := newWorld(t)
	w.policy.Approvals.Drift = &policy.Drift{SameDirectory: policy.Ask}
	h := newHub(w)
	tx, fingerprint := h.propose()
	h.says(adaThere, "/approve "+fingerprint)
	h.want(tx, approval.Approved, "")
	h.push(func() { w.moveOn("deep/down.txt") })
	if g := h.want(tx, approval.Approved, ""); driftIn(g.Verdict) != "1 1 0  " {
		t.Error(driftIn(g.Verdict))
	}
	h.push(func() { w.moveOn("other.txt") })
	g := h.want(tx, approval.Pending, "in the same directory")
	if driftIn(g.Verdict) != "2 2 1 other.txt " {
		t.Error(driftIn(g.Verdict))
	}
	h.says(adaThere, "/approve "+fingerprint)
	g = h.want(tx, approval.Approved, "in the same directory")
	out, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{})
	if err != nil || out.Result.Outcome != ledger.OutcomeSuccess {
		t.Fatalf("%+v %v", out, err)
	}
	w.sound(tx, ledger.Applied)
	if n := len(w.history(tx).Log().Artifacts(approval.KindDrift)); n != 1 {
		t.Errorf("%d artifacts", n)
	}
	_, found, err := approval.CheckRecord(w.ledger().Tree, tx)
	if err != nil || len(found) > 0 {
		t.Errorf("%+v %v", found, err)
	}
}

// push makes HEAD of the world, as move leaves it, the head of the pull request.
func (h *hub) push(move func()) {
	move()
	h.pull.Head.Commit = id(len(h.w.repo.trees))
	h.refs.tips["refs/heads/topic"] = h.pull.Head.Commit
}

// TestDriftOfTheOwnDiff: a head that brings the same diff keeps a review, which then
// has the drift of what the head took up.
func TestDriftOfTheOwnDiff(t *testing.T) {
	w := newWorld(t)
	w.policy.Approvals.Drift = bounded(0)
	h := newHub(w)
	tx := h.ownDiff().ID
	h.want(tx, approval.Pending, "")
	h.greens(adaThere)
	h.want(tx, approval.Approved, "")
	was := h.pull.Head.Commit
	h.push(func() { w.repo.commit(w.readTree(was)) }) // an empty commit: the same diff
	h.bases[h.pull.Head.Commit] = id(1)
	h.want(tx, approval.Pending, "1 commit since it was made")
	h.greens(adaThere)
	g := h.want(tx, approval.Approved, "1 commit since it was made")
	if !slices.ContainsFunc(g.Verdict.Decisions, func(j approval.Judged) bool { return j.Counted }) {
		t.Errorf("%+v", g.Verdict)
	}
	h.merged(h.pull.Head.Commit)
	done, err := pull.End(t.Context(), h.runner(), tx)
	if err != nil || done.Transaction().Status != ledger.Completed {
		t.Fatalf("%s %v", done.Transaction().Status, err)
	}
	_, found, err := approval.CheckRecord(w.ledger().Tree, tx)
	if err != nil || len(found) > 0 || len(done.Log().Artifacts(approval.KindDrift)) == 0 {
		t.Errorf("%+v %v", found, err)
	}
}
