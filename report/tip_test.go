package report_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/report"
)

// T81 The tip that a check run names is read back, of its own ref alone, and only
// where this program put it; what is there and cannot be read is an error.
func TestT81TipIn(t *testing.T) {
	const ref = "refs/agent/ledger"
	tip := strings.Repeat("d", 40)
	own := report.LedgerCheck(ref, tip).Summary
	marker := own[strings.Index(own, "<!--"):]
	for name, c := range map[string]struct {
		summary, ref, want string
		fails              bool
	}{
		"its own":              {own, ref, tip, false},
		"a transaction's":      {proposal().CheckRun().Summary, "refs/agent/ledger", proposal().LedgerCommit, false},
		"of another ref":       {own, "refs/heads/ledger", "", false},
		"with CRLF":            {strings.ReplaceAll(own, "\n", "\r\n"), ref, tip, false},
		"not on the last line": {marker + "more", ref, "", false},
		"nothing":              {"", ref, "", false},
		"cut off":              {strings.TrimSpace(marker)[:50], ref, "", true},
		"no commit":            {strings.Replace(marker, tip, "main", 1), ref, "", true},
		"upper case":           {strings.Replace(marker, tip, strings.ToUpper(tip), 1), ref, "", true},
	} {
		got, err := report.TipIn(c.summary, c.ref)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
