package storetest_test

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestLives: every life ends as its name says, and breaks no rule.
func TestLives(t *testing.T) {
	tree, _ := storetest.Recorded(t, storetest.Mixed(20)...)
	all, err := lookup.All(tree)
	if err != nil {
		t.Fatal(err)
	}
	have := map[ledger.Status]int{}
	for _, tx := range all {
		have[tx.Status]++
		dir, err := tree.Sub(ledger.Dir(tx.TransactionID))
		if err != nil {
			t.Fatal(err)
		}
		if _, found := ledger.ReadOwn(dir, tx.TransactionID); len(found) > 0 {
			t.Errorf("%s: %v", tx.TransactionID, found)
		}
	}
	// Given and CutOff stay Proposed, beside Reviewed.
	for status, want := range map[ledger.Status]int{
		ledger.Completed: 3, ledger.Proposed: 7, ledger.Awaiting: 2, ledger.Denied: 4, ledger.Applied: 2, ledger.Interrupted: 2, ledger.Superseded: 2,
	} {
		if have[status] != want {
			t.Errorf("%d are %s, want %d", have[status], status, want)
		}
	}
}
