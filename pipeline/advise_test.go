package pipeline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// claim is what a tool says, a finding of each of these levels.
func claim(tool string, levels ...policy.Level) approval.Advice {
	a := approval.Advice{Tool: tool, Findings: []approval.Claim{}}
	for _, l := range levels {
		a.Findings = append(a.Findings, approval.Claim{Level: l, Message: "it is wrong"})
	}
	return a
}

func (w *world) advises(tx string, said ...approval.Advice) pipeline.Judgement {
	w.Helper()
	g, err := w.as(bot).Advise(w.Context(), tx, said)
	fatal(w, err)
	return g
}

// advised is a world whose Policy asks for somebody where semgrep finds an error.
func advised(t *testing.T) *world {
	w := newWorld(t)
	w.policy.Protected = []policy.Rule{{Advice: &policy.AdviceRule{Tool: "semgrep", Level: "error"}, Required: 1}}
	return w
}

func (w *world) protects(who ledger.Actor, tx string) error {
	_, err := w.as(who).Decide(w.Context(), tx, pipeline.Ruling{Decision: ledger.Approve, Kind: "local", Fingerprints: []string{"protected"}})
	return err
}

// TestT98Advice: what comes between approval and apply stops the apply until somebody approves who can know it, and an audit decides
// the same; a better result takes nothing back.
func TestT98Advice(t *testing.T) {
	w := advised(t)
	g := w.approved()
	tx := g.Transaction().TransactionID
	if g = w.advises(tx, claim("semgrep", "warning"), claim("Semgrep", "error")); g.Err() != nil || !g.Recorded {
		t.Fatal(g.Err())
	}
	if g = w.advises(tx, claim("semgrep", "error", "note")); !errors.As(g.Err(), new(*pipeline.PendingError)) || g.Transaction().Status != ledger.Awaiting {
		t.Fatalf("%v", g.Err())
	}
	w.advises(tx, claim("semgrep"))
	if _, err := w.as(bot).Apply(t.Context(), w.gate(tx), pipeline.ApplyOptions{}); !errors.As(err, new(*pipeline.PendingError)) {
		t.Fatalf("%v", err)
	}
	fatal(t, w.protects(ada, tx))
	w.apply(w.gate(tx))
	w.verifies(tx)
	w.advises(tx, claim("semgrep", "error", "error"), claim("other", "error")) // it is applied, and stays so
	if g = w.history(tx); g.Err() != nil || len(g.Verdict.Needs) != 2 {
		t.Errorf("%v %+v", g.Err(), g.Verdict.Needs)
	}
	if list, err := review.Risks(t.Context(), g); err != nil || len(list.Risks) != 6 || list.Risks[1].Kind != risk.Claimed || list.Risks[1].Detail != "Semgrep says error: it is wrong" {
		t.Errorf("%v %+v", err, list.Risks)
	}
	w.verifies(tx)
	snap := w.ledger()
	if c := explain.SimulateTransaction(snap.Tree, new(approval.Policies), tx, w.policy); c.Now != approval.Approved || c.Difference != explain.NoDifference { // by the record alone
		t.Errorf("%+v", c)
	}
	stricter := w.policy
	stricter.Protected = []policy.Rule{{Advice: &policy.AdviceRule{Tool: "semgrep", Level: "warning"}, Required: 2}}
	if c := explain.SimulateTransaction(snap.Tree, new(approval.Policies), tx, stricter); c.Now == approval.Approved {
		t.Errorf("%+v", c)
	}
}

// TestT98AdviceDuringApply: a finding that arrives while apply is about to record its intent makes it look again, and one that
// arrives while it writes turns nothing.
func TestT98AdviceDuringApply(t *testing.T) {
	for n, stopped := range map[int]bool{1: true, 2: false} {
		w := advised(t)
		g := w.approved()
		tx := g.Transaction().TransactionID
		r := w.as(bot)
		r.Store = &meddling{Store: w.store, n: n, do: func() { w.advises(tx, claim("semgrep", "error")) }}
		_, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{})
		if errors.As(err, new(*pipeline.PendingError)) != stopped || err != nil && !stopped {
			t.Errorf("%d: %v", n, err)
		}
		w.verifies(tx)
		if g := w.history(tx); !stopped && (g.Err() != nil || len(g.Verdict.Needs) != 1) {
			t.Errorf("%v %+v", g.Err(), g.Verdict.Needs)
		}
		w.sound(tx, map[bool]ledger.Status{true: ledger.Awaiting, false: ledger.Applied}[stopped])
	}
}

// TestT98AdviceFlood: a change takes so much and no more, but what asks for somebody is always taken, and what is over takes none.
func TestT98AdviceFlood(t *testing.T) {
	w := advised(t)
	tx := w.review().ID
	for i := range 20 {
		w.advises(tx, claim(fmt.Sprintf("tool %d", i), "error"))
	}
	for _, a := range []approval.Advice{claim("tool 20", "error"), claim("semgrep", "warning"), claim("semgrep")} {
		if _, err := w.as(bot).Advise(t.Context(), tx, []approval.Advice{a}); err == nil || !strings.Contains(err.Error(), "would ask for nothing more") {
			t.Errorf("%s: %v", a.Tool, err)
		}
	}
	w.advises(tx, claim("semgrep", "error"))
	if _, err := w.as(bot).Advise(t.Context(), tx, []approval.Advice{claim("semgrep", "error", "error")}); err == nil {
		t.Error("a second one is taken")
	}
	w.says(bob, ledger.Deny, tx)
	if _, err := w.as(bot).Advise(t.Context(), tx, []approval.Advice{claim("semgrep", "error")}); err == nil || !strings.Contains(err.Error(), "is closed") {
		t.Errorf("%v", err)
	}
	w.verifies(tx)
}

// TestT98AdviceSecrets: texts lose a secret that the patch has, which nothing else tells from other words; where it cannot be read, they
// are left out.
func TestT98AdviceSecrets(t *testing.T) {
	const word = "correct-horse-battery-staple-7"
	diff := strings.Replace(fix, "+hello, world", "+password = \""+word+"\"", 1)
	for _, whole := range []bool{true, false} {
		w := newWorld(t)
		out := w.reviews(bot, w.input(diff))
		r := w.as(bot)
		if whole {
			r = r.With(out.Learnt)
		}
		a := claim("gitleaks", "error")
		a.Findings[0].Message = "line 2 has " + word
		g, err := r.Advise(t.Context(), out.ID, []approval.Advice{a})
		fatal(t, err)
		said, err := g.Advice()
		if err == nil && len(said) == 0 {
			said, err = w.history(out.ID).Advice()
		}
		if err != nil || len(said) != 1 || strings.Contains(said[0].Findings[0].Message, word) || (said[0].Findings[0].Message == "") == whole {
			t.Errorf("%v: %v %+v", whole, err, said)
		}
	}
}

// TestT98AdviceOnPull: on a pull request, what was said before asks for an approval behind it as well, and the record says so alone. A
// comment from before is none, also where it is read after.
func TestT98AdviceOnPull(t *testing.T) {
	w := advised(t)
	h := newHub(w)
	tx, fingerprint := h.propose()
	h.says(adaThere, "/approve "+fingerprint)
	h.want(tx, approval.Approved, "")
	h.says(bobThere, "/approve protected:"+fingerprint)
	w.advises(tx, claim("semgrep", "error"))
	h.want(tx, approval.Pending, "before it was recorded what a tool found")
	h.says(bobThere, "/approve protected:"+fingerprint)
	g := h.want(tx, approval.Approved, "")
	h.apply(g)
	w.verifies(tx)
}
