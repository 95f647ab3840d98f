package report_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/report"
)

// TestScreen: a list fits the screen, in the reader's zone, whatever a summary holds.
func TestScreen(t *testing.T) {
	list := []ledger.Transaction{
		{TransactionID: "tx_01M82YFRMRC61F83E0W3CJ76HE", Status: ledger.Awaiting, CreatedAt: "2026-11-20T23:30:00.5Z", Notes: "Bump \x1b[2Jlodash", Proposer: ledger.Actor{Login: "renovate"}},
		{TransactionID: "tx_01M82YFRMRC61F83E0W3CJ76HF", Status: ledger.Proposed, CreatedAt: "2026-11-23T00:29:30Z", Notes: strings.Repeat("名前を変える ", 30), Proposer: ledger.Actor{Login: strings.Repeat("長", 30)}},
		{TransactionID: "x", Status: ledger.Denied, CreatedAt: "never", Notes: strings.Repeat("a", 300)},
	}
	now := time.Date(2026, 11, 23, 1, 30, 0, 0, time.FixedZone("CET", 3600))
	want := `ID       STATUS             AGE       PROPOSED     SUMMARY
3CJ76HE  awaiting_approval  2 days    11-21 00:30  "Bump \x1b[2Jlodash"
3CJ76HF  proposed           now       11-23 01:29  "名前を変える 名前を変える …
x        denied                                    "aaaaaaaaaaaaaaaaaaaaaaaaaa…
`
	if got := report.Screen(list, now, 79, report.Style{}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, columns := range []int{1, 2, 20, 79, 80, 110, 132, 1000} {
		text := report.Screen(list, now, columns, report.Style{})
		if n := strings.Count(text, "\n"); n != 4 || !utf8.ValidString(text) || strings.Contains(text, "\x1b") {
			t.Errorf("%d columns: %q", columns, text)
		}
		for line := range strings.Lines(text) {
			wide := 0
			for _, r := range strings.TrimSuffix(line, "\n") {
				wide++
				if r > 0x2fff {
					wide++
				}
			}
			if wide > columns {
				t.Errorf("%d columns of %d: %q", wide, columns, line)
			}
		}
	}
	if text := report.Screen(list, now, 120, report.Style{}); !strings.Contains(text, "2026-11-21 00:30  renovate ") {
		t.Errorf("a wide screen:\n%s", text)
	}
	if got, want := report.IDs(list[:2]), "tx_01M82YFRMRC61F83E0W3CJ76HE\ntx_01M82YFRMRC61F83E0W3CJ76HF\n"; got != want {
		t.Errorf("%q", got)
	}
}
