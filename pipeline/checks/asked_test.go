package checks

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// T82: a record of a Proposal that does not say what the Proposal asks for is not
// read as one that asks for nothing.
func TestT82ChecksAreMissing(t *testing.T) {
	for _, c := range []struct {
		kind string
		ok   bool
	}{{ledger.KindProposal, false}, {"patch", true}} {
		tx := ledger.Transaction{TransactionID: "tx_1"}
		tx.Pointers.Proposal = &ledger.Proposal{Kind: c.kind}
		_, err := ReadAsked(fstest.MapFS{}, tx)
		var corrupt *ledger.CorruptError
		if (err == nil) != c.ok || err != nil && !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", c.kind, err)
		}
	}
}
