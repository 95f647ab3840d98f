package look

import (
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/report/html"
)

// TestAsks: a decision is prepared once somebody is asked for an approval, and only where the page shows the diff.
func TestAsks(t *testing.T) {
	w := newWorld(t)
	entries, err := storetest.Lives(storetest.Reviewed, storetest.Asked, storetest.Asked)
	check(t, err)
	w.add(entries...)
	b, err := w.open(options{})
	check(t, err)
	defer b.Repo.Close()
	h, err := b.Ledger.History(t.Context(), gitstore.HistoryOptions{})
	check(t, err)
	check(t, b.audit(t.Context(), h))
	prepared := 0
	for id, s := range b.summaries {
		w.secret = ""
		doc, err := b.asks(id)
		if check(t, err); doc != nil {
			prepared++
		}
		if (doc != nil) != (s.Status == ledger.Awaiting) {
			t.Errorf("%s: %v", s.Status, doc)
		}
		own, err := b.read(id)
		check(t, err)
		w.secret = string(own.Patch)
		if doc, err := b.asks(id); doc != nil || err != nil {
			t.Errorf("its diff is left out: %v %v", doc, err)
		}
		for other := range b.summaries {
			if later, err := b.read(other); err != nil || other == id {
				check(t, err)
			} else if later.Supersedes = []string{id}; !left(html.Compared(later, b.masks, b.read)) {
				t.Errorf("%s took the place of one with a secret, and its diff is shown", other)
			}
		}
	}
	if prepared != 2 {
		t.Errorf("%d decisions are prepared", prepared)
	}
}

func left(_ *html.Transaction, masked bool) bool { return masked }

// TestDecidesElsewhere: of a ledger of several repositories a site's passkeys decide on its own one's pull requests.
func TestDecidesElsewhere(t *testing.T) {
	b := &build{Source: Source{Passkeys: Passkeys{Origin: "https://acme.github.io"}, Links: forge.Links{Web: "https://github.com/acme/app"}}}
	for name, want := range map[string]bool{"acme/app": true, "Acme/App": true, "acme/other": false, "other/app": false, "": false} {
		if got := b.decides(html.Summary{Waits: true, PullRequest: 7, Repository: &ledger.Repository{ID: "1", Name: name}}); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
