package forge_test

import (
	"context"
	"errors"
	"maps"
	"path"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A told forge has one pull request.
type told struct {
	forge.Reader
	pull forge.PullRequest
}

func (f told) PullRequest(context.Context, int) (forge.PullRequest, error) { return f.pull, nil }

// TestT10OpenedFor: who proposed the patch that a pull request was opened for is among those
// who wrote it, whatever its commits say. A branch's name in a fork, or of no transaction, adds
// nobody, and half of a record is an error and not nobody.
func TestT10OpenedFor(t *testing.T) {
	store := &storetest.Memory{}
	entries, err := storetest.Lives(storetest.Mixed(1)...)
	if err != nil {
		t.Fatal(err)
	}
	for tip, i := "", 0; i < len(entries); {
		next, err := store.Append(t.Context(), tip, entries[i])
		if err == nil {
			tip, i = next, i+1
		} else if !errors.Is(err, writing.ErrMoved) {
			t.Fatal(err)
		}
	}
	snap, err := store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := lookup.Each(snap.Tree)
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	tx := all[0]
	here, there := &ledger.Repository{ID: "100"}, &ledger.Repository{ID: "200"}
	from := func(branch string, in *ledger.Repository) forge.PullRequest {
		return forge.PullRequest{Repository: *here, Base: forge.Side{Repository: here}, Head: forge.Side{Repository: in, Branch: branch}, Committers: []ledger.Actor{{Kind: "user", ID: "1", Login: "ada"}}}
	}
	for name, c := range map[string]struct {
		pull  forge.PullRequest
		store writing.Store
		adds  bool
		fails bool
	}{
		"ours":               {from(forge.Branch(tx.TransactionID), here), store, true, false},
		"of a fork":          {from(forge.Branch(tx.TransactionID), there), store, false, false},
		"another branch":     {from("topic", here), store, false, false},
		"a part of the id":   {from(forge.Branch(tx.TransactionID[:20]), here), store, false, false},
		"no such":            {from(forge.Branch("tx_01M838AX5JJAQSMV8NV9X99Y9H"), here), store, false, false},
		"an empty ledger":    {from(forge.Branch(tx.TransactionID), here), &storetest.Memory{}, false, false},
		"half of the record": {from(forge.Branch(tx.TransactionID), here), half{store}, false, true},
		"no ledger":          {from(forge.Branch(tx.TransactionID), here), unread{}, false, true},
	} {
		pull, err := (&forge.PullReader{Forge: told{pull: c.pull}, Store: c.store}).PullRequest(t.Context(), 7)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		added := len(pull.Committers) == 2 && pull.Committers[1].ID == tx.Proposer.ID
		if added != c.adds || !c.adds && len(pull.Committers) > 1 {
			t.Errorf("%s: %+v", name, pull.Committers)
		}
	}
}

// half is a ledger whose transactions lack their state.
type half struct{ *storetest.Memory }

func (h half) Snapshot(ctx context.Context, paths ...string) (writing.Snapshot, error) {
	snap, err := h.Memory.Snapshot(ctx, paths...)
	maps.DeleteFunc(snap.Tree.(fstest.MapFS), func(name string, _ *fstest.MapFile) bool { return path.Base(name) == ledger.TransactionFile })
	return snap, err
}

// unread is a ledger that cannot be read.
type unread struct{ *storetest.Memory }

func (unread) Snapshot(context.Context, ...string) (writing.Snapshot, error) {
	return writing.Snapshot{}, errors.New("no connection")
}
