package html

import (
	"fmt"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// In tests every template is held to fit what it is filled in with, in all of its branches.
var _ = pagetest.CheckTemplates(templates())

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

// TestPolicyParts: the lines of a Policy that did not apply are one part, however many they are: pages take long for many.
func TestPolicyParts(t *testing.T) {
	s := &sheet{}
	s.T.written = "version: 1\nlimits:\n  files: 1\napprovals:\n  required: 1\nsandbox: x\n"
	var got []string
	for _, p := range s.policyParts() {
		got = append(got, fmt.Sprint(p.Text, p.Applied))
	}
	if want := []string{"version: 1\nlimits:\n  files: 1\nfalse", "approvals:\ntrue", "false", "  required: 1\ntrue", "sandbox: x\nfalse"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
