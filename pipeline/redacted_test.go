package pipeline_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/review"
)

// TestT48ProposerIsNoSecret: what a patch holds does not take its proposer's id out of the record, by which they are
// kept from approving, be it that of the first or of a further proposal.
func TestT48ProposerIsNoSecret(t *testing.T) {
	mallory := ledger.Actor{Kind: "user", ID: "12345678", Login: "mallory-the-2nd"}
	hiding := strings.Replace(fix, "+new\n", "+postgres://shop:"+mallory.ID+"@db.example.org/ amqp://shop:"+mallory.Login+"@mq.example.org/\n", 1)
	for name, proposers := range map[string][]ledger.Actor{"first": {mallory}, "too": {botThere, mallory}} {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			h.access[mallory.Login] = "write"
			tx, patchID := h.proposedBy(hiding, proposers...)
			all := h.w.provenances(tx)
			if got := all[len(all)-1].Proposer; got != mallory {
				t.Errorf("the proposer is recorded as %+v", got)
			}
			h.says(mallory, "/approve patchset:"+patchID)
			h.says(mallory, "/approve secret:patchset:"+patchID)
			h.want(tx, approval.Pending, "its author is the proposer")
		})
	}
}

// TestT48KindIsNoSecret: nor does it take out what says that a patch was proposed again.
func TestT48KindIsNoSecret(t *testing.T) {
	h := newHub(newWorld(t))
	hiding := strings.Replace(fix, "+new\n", "+postgres://shop:ed_again@db.example.org/shop\n", 1)
	tx, patchID := h.proposedBy(hiding, botThere, adaThere)
	h.says(adaThere, "/approve patchset:"+patchID)
	h.says(adaThere, "/approve secret:patchset:"+patchID)
	h.want(tx, approval.Pending, "its author is the proposer")
}

// TestT48TypeIsNoSecret: nor the type of an item, without which the record would never verify, nor would the ledger.
func TestT48TypeIsNoSecret(t *testing.T) {
	h := newHub(newWorld(t))
	tx, _ := h.proposedBy(strings.Replace(fix, "+new\n", "+postgres://shop:fileChange@db.example.org/shop\n", 1), botThere)
	h.w.sound(tx, ledger.Proposed)
}

// TestT48PathIsNoSecret: a path that a patch has as a secret too is refused, as it tells who has to approve.
func TestT48PathIsNoSecret(t *testing.T) {
	h := newHub(newWorld(t))
	r := h.runner()
	in, err := pull.ChangeFor(t.Context(), r, h.w.input("diff --git a/.github/workflows/ci.yml b/.github/workflows/ci.yml\nnew file mode 100644\n--- /dev/null\n+++ b/.github/workflows/ci.yml\n"+
		"@@ -0,0 +1 @@\n+postgres://shop:workflows@db.example.org/shop\n"), 7)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := review.Run(t.Context(), r, in, false); !errors.As(err, new(*redact.FoundError)) {
		t.Errorf("%+v %v", done.ID, err)
	}
}

// proposedBy has several propose a patch for the pull request, one after the other.
func (h *hub) proposedBy(diff string, proposers ...ledger.Actor) (tx, patchID string) {
	h.w.Helper()
	for _, who := range proposers {
		r := h.runner()
		in, err := pull.ChangeFor(h.w.Context(), r, h.w.input(diff), 7)
		if err != nil {
			h.w.Fatal(err)
		}
		in.Proposer = &who
		done, err := review.Run(h.w.Context(), r, in, false)
		if err != nil {
			h.w.Fatal(err)
		}
		tx, patchID = done.ID, done.PatchID
	}
	return tx, patchID
}

// TestL24Redacted: a further proposal whose words turn out to have a secret once they are read leaves a record that
// verifies: it is somebody else's transaction.
func TestL24Redacted(t *testing.T) {
	w := newWorld(t)
	first := w.review()
	address := "mallory9xq@example7.org"
	out := w.again(ada, func(in *input.Change) {
		in.Author = &ledger.Author{Name: "Mallory", Email: address, Date: "2026-01-01T00:00:00Z"}
		in.Messages = []string{"greet\n\nwhy\n\nPassword:            '" + address + "'"}
	})
	if out.Again != review.AgainRecorded {
		t.Errorf("%+v", out.Again)
	}
	if all := w.provenances(first.ID); len(all) != 2 || all[1].Proposer != ada || all[1].Author != nil {
		t.Errorf("%+v", all)
	}
	w.sound(first.ID, ledger.Proposed)
	w.gate(first.ID)
}
