package pipeline_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// forged is a transaction as somebody with write access to the ledger makes it:
// every hash of it holds, but the record does not tell what the patch is.
func (w *world) forged(patch string, stored func(string) string, edit func(*ledger.Item)) string {
	w.Helper()
	return w.recorded(patch, func(set, _ []byte) []byte { return []byte(stored(string(set))) }, edit, ledger.KindRisks, nil)
}

// without is a transaction as a program recorded it that knew of no artifacts of a
// kind.
func (w *world) without(kind, patch string) string {
	w.Helper()
	return w.recorded(patch, func(_, stored []byte) []byte { return stored }, func(*ledger.Item) {}, kind, nil)
}

// recorded records again what a review recorded, with another stored patch, edited,
// and with another artifact of a kind, none where instead is nil.
func (w *world) recorded(patch string, patchOf func(set, stored []byte) []byte, edit func(*ledger.Item), kind string, instead func(patchID string) any) string {
	w.Helper()
	honest := newWorld(w.T)
	honest.repo, honest.policy = w.repo, w.policy
	out := honest.reviews(bot, honest.input(patch))
	log, snap := honest.log(out.ID), honest.ledger()
	stored := patchOf(out.Patchset.Bytes(), read(w.T, snap.Tree, ledger.Dir(out.ID)+"/"+ledger.PatchFile(out.PatchID)))
	w.recordAgain(snap, log, stored, func(p ledger.Payload) {
		if p, ok := p.(*ledger.TurnItem); ok && p.Item.Metadata != nil {
			edit(&p.Item)
		}
	}, kind, instead)
	return out.ID
}

// recordAgain records what a log of another ledger has, with another stored patch, each
// event edited, and with another artifact of a kind, none where instead is nil.
func (w *world) recordAgain(snap writing.Snapshot, log *ledger.Log, stored []byte, edit func(ledger.Payload), kind string, instead func(patchID string) any) {
	w.Helper()
	tx := log.Transaction()
	s := writing.NewStage(&ledger.Log{}, w.now(), storetest.Plain{})
	for _, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.ArtifactStored:
			if p.Kind == kind {
				if instead != nil {
					s.Artifact(kind, instead(tx.PatchID()))
				}
				continue
			}
			raw := read(w.T, snap.Tree, ledger.Dir(tx.TransactionID)+"/"+p.Path)
			doc, err := canon.Parse(raw)
			fatal(w, err)
			s.Artifact(p.Kind, doc)
		default:
			edit(p)
			s.Event(p)
		}
	}
	s.Patch(tx.PatchID(), stored)
	s.Proposed(tx.PatchID(), tx.PullRequest())
	entry, err := s.Entry(writing.Title{Stage: "review", Outcome: "proposed", Subject: "forged"}, true)
	fatal(w, err)
	for {
		if _, err := w.store.Append(w.Context(), "", *entry); err == nil {
			break
		} else if !errors.Is(err, writing.ErrMoved) {
			w.Fatal(err)
		}
	}
}

// refuses fails the test unless an approved transaction is not applied.
func (w *world) refuses(tx, patch, why string) {
	w.Helper()
	w.gate(tx)
	w.says(ada, ledger.Approve, tx)
	r, err := w.as(bot).Give(w.Context(), w.ledger(), tx, []byte(patch))
	fatal(w, err)
	g, err := r.Gate(w.Context(), tx)
	fatal(w, err)
	if _, err = r.Apply(w.Context(), g, pipeline.ApplyOptions{}); err == nil || !strings.Contains(err.Error(), why) {
		w.Errorf("%v, want %q", err, why)
	}
	w.holds(base)
}

const workflow = "diff --git a/.github/workflows/x.yml b/.github/workflows/x.yml\nnew file mode 100644\n--- /dev/null\n+++ b/.github/workflows/x.yml\n@@ -0,0 +1 @@\n+on: push\n" + fix

// TestT53ForgedProposal: who can write the ledger cannot show one patch and have
// another applied.
func TestT53ForgedProposal(t *testing.T) {
	same := func(s string) string { return s }
	t.Run("T35 a protected file is not named", func(t *testing.T) {
		w := newWorld(t)
		tx := w.forged(workflow, same, func(it *ledger.Item) {
			hidden := func(name string) bool { return strings.HasPrefix(name, ".github/") }
			it.Changes = slices.DeleteFunc(it.Changes, func(c ledger.ItemChange) bool { return hidden(c.Path) })
			it.Metadata.TargetFiles = slices.DeleteFunc(it.Metadata.TargetFiles, hidden)
			delete(it.Metadata.BaseSHA256, ".github/workflows/x.yml")
			delete(it.Metadata.AfterSHA256, ".github/workflows/x.yml")
		})
		if _, err := w.as(bot).Gate(t.Context(), tx); err == nil || !strings.Contains(err.Error(), "the files that it names are not those of its patch") {
			t.Errorf("the gate: %v", err)
		}
	})
	t.Run("part of the patch is hidden as if it were a secret", func(t *testing.T) {
		w := newWorld(t)
		hide := func(s string) string { return strings.Replace(s, "hello, world", "all is well", 1) }
		tx := w.forged(fix, hide, func(it *ledger.Item) {
			out, err := review.Run(t.Context(), w.as(bot), w.input(fix), true)
			fatal(t, err)
			it.Metadata.PatchRedactedSHA256 = canon.Sum([]byte(hide(string(out.Patchset.Bytes()))))
		})
		w.refuses(tx, fix, "what is stored of its patch is not that patch without secrets")
	})
	t.Run("T46 a secret is not told", func(t *testing.T) {
		w := newWorld(t)
		patch, _ := leak()
		tx := w.forged(patch, same, func(it *ledger.Item) {
			it.Metadata.ContainsSecrets, it.Metadata.PatchRedactedSHA256 = false, ""
		})
		w.refuses(tx, patch, "what looks like a secret")
	})
}

// TestPolicyChangesDuringChecks: what was checked under another Policy is not
// applied under this one.
func TestPolicyChangesDuringChecks(t *testing.T) {
	w, shop := commanded(t, "has world greet.txt")
	g := w.approved()
	r := w.in(shop, bot)
	r.Commands = changing{shop, func() {
		w.policy.Commands.Run = append(w.policy.Commands.Run, w.policy.Commands.Run[0])
		w.policy.Commands.Run[1].Argv = []string{"has", "mars", "greet.txt"}
	}}
	out, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{})
	if !errors.Is(err, pipeline.ErrPolicyChanged) {
		t.Fatalf("%v", err)
	}
	w.holds(base)
	r = r.With(out.Learnt)
	r.Commands = shop
	var failed *pipeline.ChecksError
	if _, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &failed) || len(shop.ran) != 2 {
		t.Fatalf("%v after %q", err, shop.ran)
	}
	w.holds(base)
}

// changing runs commands, and something else meanwhile.
type changing struct {
	*workshop
	meanwhile func()
}

func (c changing) Run(ctx context.Context, known redact.Finder, mode policy.Sandbox, tree fs.FS, commands []policy.Check) ([]checks.Execution, error) {
	c.meanwhile()
	return c.workshop.Run(ctx, known, mode, tree, commands)
}

func read(t *testing.T, tree fs.FS, name string) []byte {
	t.Helper()
	raw, err := fs.ReadFile(tree, name)
	fatal(t, err)
	return raw
}
