package audit

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

func TestGateOnly(t *testing.T) {
	yes, no := []Said{{Decision: ledger.Approve}}, []Said{{Decision: ledger.Deny}}
	for name, c := range map[string]struct {
		kind   string
		status ledger.Status
		said   []Said
		denied bool
		want   bool
	}{
		"merged":                       {ledger.KindPullRequest, ledger.Completed, yes, false, true},
		"approved":                     {ledger.KindPullRequest, ledger.Proposed, yes, false, true},
		"not asked about yet":          {ledger.KindPullRequest, ledger.Proposed, nil, false, false},
		"one approval of two":          {ledger.KindPullRequest, ledger.Awaiting, yes, false, false},
		"denied":                       {ledger.KindPullRequest, ledger.Denied, no, false, false},
		"denied in another one":        {ledger.KindPullRequest, ledger.Proposed, yes, true, false},
		"merged as something else":     {ledger.KindPullRequest, ledger.Interrupted, yes, false, false},
		"another head":                 {ledger.KindPullRequest, ledger.Superseded, yes, false, false},
		"a proposal, only approved":    {"patch", ledger.Proposed, yes, false, false},
		"a proposal that was not made": {"patch", ledger.Failed, yes, false, false},
	} {
		tx := ledger.Transaction{Status: c.status, Pointers: ledger.Pointers{Proposal: &ledger.Proposal{Kind: c.kind}}}
		got, why := gateOnly(tx, c.said, c.denied)
		if got != c.want || why == "" {
			t.Errorf("%s: %v, %s", name, got, why)
		}
	}
}
