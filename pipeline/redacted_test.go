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
// kept from approving, be it that of the first or of a further proposal; nor what says that a patch was proposed again; nor the
// type of an item, without which the record would never verify, nor would the ledger.
func TestT48ProposerIsNoSecret(t *testing.T) {
	mallory := ledger.Actor{Kind: "user", ID: "12345678", Login: "mallory-the-2nd"}
	for name, c := range map[string]struct {
		words     []string
		proposers []ledger.Actor
	}{
		"first":    {[]string{mallory.ID, mallory.Login}, []ledger.Actor{mallory}},
		"too":      {[]string{mallory.ID, mallory.Login}, []ledger.Actor{botThere, mallory}},
		"the kind": {[]string{"ed_again"}, []ledger.Actor{botThere, mallory}},
		"the type": {[]string{"fileChange"}, []ledger.Actor{mallory}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			h.access[mallory.Login] = "write"
			hiding := "+"
			for _, word := range c.words {
				hiding += "postgres://shop:" + word + "@db.example.org/ "
			}
			var done review.Reviewed
			for _, who := range c.proposers {
				done = h.offers(h.runner(), strings.Replace(fix, "+new\n", hiding+"\n", 1), &who)
			}
			all := h.w.provenances(done.ID)
			if got := all[len(all)-1].Proposer; got != mallory || len(all) != len(c.proposers) {
				t.Errorf("the proposer is recorded as %+v", got)
			}
			h.w.sound(done.ID, ledger.Proposed)
			h.says(mallory, "/approve patchset:"+done.PatchID)
			h.says(mallory, "/approve secret:patchset:"+done.PatchID)
			h.want(done.ID, approval.Pending, "its author is the proposer")
		})
	}
}

// TestT48PathIsNoSecret: a path that a patch has as a secret too is refused, as it tells who has to approve.
func TestT48PathIsNoSecret(t *testing.T) {
	h := newHub(newWorld(t))
	r := h.runner()
	in, err := pull.ChangeFor(t.Context(), r, h.w.input("diff --git a/.github/workflows/ci.yml b/.github/workflows/ci.yml\nnew file mode 100644\n--- /dev/null\n+++ b/.github/workflows/ci.yml\n"+
		"@@ -0,0 +1 @@\n+postgres://shop:workflows@db.example.org/shop\n"), 7)
	fatal(t, err)
	if done, err := review.Run(t.Context(), r, in, false); !errors.As(err, new(*redact.FoundError)) {
		t.Errorf("%+v %v", done.ID, err)
	}
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
