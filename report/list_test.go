package report_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// TestScreen: a list fits the screen, in the reader's zone, whatever a summary holds.
func TestScreen(t *testing.T) {
	list := []report.Listed{
		{Transaction: ledger.Transaction{TransactionID: "tx_01M82YFRMRC61F83E0W3CJ76HE", CreatedAt: "2026-11-20T23:30:00.5Z", Notes: "Bump \x1b[2Jlodash", Proposer: ledger.Actor{Login: "renovate"}}, State: plain.Waits},
		{Transaction: ledger.Transaction{TransactionID: "tx_01M82YFRMRC61F83E0W3CJ76HF", CreatedAt: "2026-11-23T00:29:30Z", Notes: strings.Repeat("名前を変える ", 30), Proposer: ledger.Actor{Login: strings.Repeat("長", 30)}}, State: plain.Approved, By: []string{"ada"}},
		{Transaction: ledger.Transaction{TransactionID: "x", Closed: true, CreatedAt: "never", Pointers: ledger.Pointers{Proposal: &ledger.Proposal{AfterSHA256: map[string]*string{"a\x1b": nil, "b": nil, "c": nil, "d": nil}}}}, State: plain.Denied},
	}
	now := time.Date(2026, 11, 23, 1, 30, 0, 0, time.FixedZone("CET", 3600))
	const (
		head     = "ID       STATE                  AGE     BY              SUMMARY\n"
		ended    = "x        denied                                         (delete a\\x1b, b, c an…\n"
		approved = "3CJ76HF  approved, not applied  now     長長長長長長…   \"名前を変える 名前を変…\n"
		waits    = "3CJ76HE  waits for approval     2 days  renovate        \"Bump \\x1b[2Jlodash\"\n"
	)
	fitting, left := report.Fit(list, math.MaxInt)
	if left != 0 {
		t.Errorf("%d are left out", left)
	}
	if got, want := report.Screen(fitting, now, 79, report.Style{}), head+ended+approved+waits; got != want {
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
	if text := report.Screen(list, now, 1000, report.Style{}); !strings.Contains(text, "  approved by ada\n") {
		t.Errorf("a wide screen:\n%s", text)
	}
	two := append([]report.Listed{list[1]}, list...)
	for rows, want := range map[int]string{1000: head + ended + approved + approved + waits, 6: head + ended + approved + approved + waits,
		5: "2 older: countersign list --all\n" + head + approved + waits, 1: "3 older: countersign list --all\n" + strings.NewReplacer("STATE   ", "STATE", "l   ", "l", "renovate      ", "renovate", "BY              ", "BY        ").Replace(head+waits)} {
		fitting, left := report.Fit(two, rows)
		if got := report.Older(left, "countersign list --all") + report.Screen(fitting, now, 79, report.Style{}); got != want {
			t.Errorf("%d rows: got\n%s\nwant\n%s", rows, got, want)
		}
	}
	if got, want := report.IDs([]ledger.Transaction{{TransactionID: "tx_01M82YFRMRC61F83E0W3CJ76HE"}, {TransactionID: "tx_01M82YFRMRC61F83E0W3CJ76HF"}}), "tx_01M82YFRMRC61F83E0W3CJ76HE\ntx_01M82YFRMRC61F83E0W3CJ76HF\n"; got != want {
		t.Errorf("%q", got)
	}
}
