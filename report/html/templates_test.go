package html

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/template/templatetest"
)

// In tests every template is held to fit what it is filled in with, in all of its branches.
var _ = templatetest.Check(templates())

// TestHappenings: each type of event that people are told of has a text, whatever is missing in it.
func TestHappenings(t *testing.T) {
	s := &sheet{}
	for _, p := range []ledger.Payload{
		&ledger.Meta{}, &ledger.StatusChange{To: ledger.Denied}, &ledger.CommandItem{}, &ledger.TraceItem{}, &ledger.ApprovalRequest{}, &ledger.ApprovalDecision{}, &ledger.ApplyStart{}, &ledger.ApplyComplete{},
		&ledger.ValidateComplete{}, &ledger.Close{}, nil,
		&ledger.ArtifactStored{Kind: "posted"}, &ledger.ArtifactStored{Kind: "merge"}, &ledger.ArtifactStored{Kind: "standing"}, &ledger.ArtifactStored{Kind: "validation"},
	} {
		s.T.events = []event{{payload: p}}
		if len(s.timeline()) != 1 {
			t.Errorf("%T says nothing", p)
		}
	}
	s.T.events = []event{{payload: &ledger.TurnStart{}}, {payload: &ledger.ArtifactStored{Kind: "trace"}}}
	if told := s.timeline(); len(told) != 0 {
		t.Errorf("%v", told)
	}
}
