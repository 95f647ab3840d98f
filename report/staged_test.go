package report_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// TestStaged: what is said to be staged is the files that were written, and no others that Git takes
// a name for, nor an option.
func TestStaged(t *testing.T) {
	for name, want := range map[string]string{
		"a b": "git add 'a b' &&", "*": "git add ':(literal)*' &&", "--all ": "git add ':(literal)--all ' &&",
		"-A": "git add ':(literal)-A' &&", ":x": "git add ':(literal):x' &&", "[ab]": "git add ':(literal)[ab]' &&",
	} {
		r := report.Report{TransactionID: "tx_01K5Z8M2QV0000000000000000", ApplyResult: &ledger.ApplyResult{
			Outcome: ledger.OutcomeSuccess, Operations: []ledger.Operation{{Path: name, Op: "create", Status: ledger.StatusSuccess}},
		}}
		if got := r.Result("", func(args ...string) string { return strings.Join(args, " ") }, 200, report.Style{}); !strings.Contains(got, want) {
			t.Errorf("%q: %s", name, got)
		}
	}
}
