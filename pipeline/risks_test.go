package pipeline_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// told is a list of risks, one a line.
func told(t *testing.T, g pipeline.Judgement) string {
	t.Helper()
	list, err := review.Risks(t.Context(), g)
	fatal(t, err)
	var b strings.Builder
	for _, r := range list.Risks {
		b.WriteString(strings.TrimSpace(string(r.Kind)+" "+r.Path+" "+r.Detail) + "\n")
	}
	return b.String()
}

// TestRisks: a review records what people are shown first, and the Policy that
// holds by then adds what it protects.
func TestRisks(t *testing.T) {
	w := newWorld(t)
	tx := w.review().ID
	if got, want := told(t, w.gate(tx)), "delete old.txt 1 line\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.policy.Protected = []policy.Rule{{Paths: []string{"/new/*"}, Required: 1}}
	g := w.gate(tx)
	if got, want := told(t, g), "protected new/file.txt protected[0] /new/*\ndelete old.txt 1 line\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	stored := g.Log().Artifacts(ledger.KindRisks)
	if len(stored) != 1 {
		t.Fatalf("%d lists are recorded", len(stored))
	}
	if shown := approval.Shown(g.Log()); shown != "sha256:"+stored[0].ArtifactID {
		t.Error(shown)
	}
}

// TestRisksOfSecret: a list says where secrets are, also where only it can, and
// never one of them.
func TestRisksOfSecret(t *testing.T) {
	w := newWorld(t)
	diff, secret := leak()
	tx := w.proposed(diff)
	got := told(t, w.gate(tx))
	if !strings.HasPrefix(got, "unlisted") || !strings.Contains(got, "\nsecret greet.txt ") || strings.Contains(got, secret) {
		t.Error(got)
	}
	w.keeps(secret)
}

// TestRisksOfOld: of a transaction that was recorded without a list it is made of
// the patch; where that is not to be had, it is said.
func TestRisksOfOld(t *testing.T) {
	w := newWorld(t)
	tx := w.without(ledger.KindRisks, fix)
	g := w.gate(tx)
	if got, want := told(t, g), "delete old.txt 1 line\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if shown := approval.Shown(g.Log()); shown != "" {
		t.Error(shown)
	}
	w = newWorld(t)
	diff, _ := leak()
	tx = w.without(ledger.KindRisks, diff)
	if got, want := told(t, w.gate(tx)), noSecrets; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestRisksLeftOut: a list that was recorded by somebody who wanted things to be
// overlooked takes nothing away from what this program finds in the bytes.
func TestRisksLeftOut(t *testing.T) {
	w := newWorld(t)
	tx := w.recorded(fix, func(_, stored []byte) []byte { return stored }, func(*ledger.Item) {}, ledger.KindRisks,
		func(patchID string) any {
			return risk.NewList(patchID, []risk.Risk{{Kind: risk.Executable, Path: "greet.txt"}})
		})
	if got, want := told(t, w.gate(tx)), "executable greet.txt recorded\ndelete old.txt 1 line\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

const noSecrets = "unlisted  only the diff was seen: kept without secrets\nsecret greet.txt github-pat\n"

// TestRisksNotMade: where this program cannot look at the patch, the recorded list is
// not taken for all of it: the list says so first, and has what the diff tells.
func TestRisksNotMade(t *testing.T) {
	none := func(patchID string) any { return risk.NewList(patchID, nil) }
	same := func(_, stored []byte) []byte { return stored }
	w := newWorld(t)
	g := w.gate(w.recorded(fix, same, func(*ledger.Item) {}, ledger.KindRisks, none))
	w.repo.trees = nil // a shallow clone
	if got, want := told(t, g), "unlisted  only the diff was seen: no base commit here\ndelete old.txt 1 line\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w = newWorld(t)
	diff, _ := leak()
	tx := w.recorded(diff, same, func(*ledger.Item) {}, ledger.KindRisks, none)
	if got, want := told(t, w.gate(tx)), noSecrets; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
