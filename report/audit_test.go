package report_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/report"
)

// TestAuditOfSignedDecisions: what vouches for the keys is said, and of how many
// decisions nothing here does.
func TestAuditOfSignedDecisions(t *testing.T) {
	for d, want := range map[audit.SignedDecisions]string{
		{}:                    "",
		{Count: 2, Listed: 2}: "2 signed decisions: the signatures hold by the keys recorded with them\n  2 by a key that the commit of the recorded Policy lists\n",
		{Count: 1, Unknown: 1}: "1 signed decision: the signatures hold by the keys recorded with them\n" +
			"  1 whose Policy commit is not in this repository: it cannot be said here whose keys these were\n",
		{Count: 1, Registered: 1}: "1 signed decision: the signatures hold by the keys recorded with them\n" +
			"  1 by a key that the forge had for the account, according to the record alone\n",
		{Count: 4, Listed: 1, Unknown: 1}: "4 signed decisions: the signatures hold by the keys recorded with them\n" +
			"  1 by a key that the commit of the recorded Policy lists\n  2 by a key that the Policy's commit does not list, or lists differently (L22)\n" +
			"  1 whose Policy commit is not in this repository: it cannot be said here whose keys these were\n",
	} {
		r := audit.Result{OK: true, Complete: true, Tip: strings.Repeat("a", 40), Decisions: d}
		_, got, _ := strings.Cut(report.Audit(report.Audited{Result: r, Ref: "refs/agent/ledger"}, report.Style{}), "signed: none of them\n")
		if got != want {
			t.Errorf("%+v:\n%s\nwant\n%s", d, got, want)
		}
	}
}
