package report_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/lookup"
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

// TestQueue: what is overdue comes first, then the riskiest, the oldest, by proposer; what does not wait comes last; the same change to
// several repositories is one row.
func TestQueue(t *testing.T) {
	now := time.Date(2026, 11, 23, 1, 30, 0, 0, time.UTC)
	row := func(end string, age, due time.Duration, rank int, by, patch string) report.Listed {
		l := report.Listed{Transaction: ledger.Transaction{
			TransactionID: "tx_01M82YFRMRC61F83E0W3CJ7" + end, Notes: end, Proposer: ledger.Actor{Login: by}, CreatedAt: ledger.FormatTime(now.Add(-age)),
			Pointers: ledger.Pointers{Proposal: &ledger.Proposal{PatchID: patch}},
		}, State: plain.Waits}
		l.Turn = lookup.NewTurn(l.CreatedAt, due, rank, by)
		return l
	}
	const day = 24 * time.Hour
	ended := row("END", day, 0, 0, "a", "1")
	ended.State = plain.Applied
	unread := row("UNR", day, 2*day, 9, "a", "5")
	unread.Turn = lookup.NewTurn("never", 2*day, 9, "a")
	list := []report.Listed{
		ended, row("NEW", 0, 2*day, 9, "a", "6"), row("ZOE", day, 2*day, 9, "zoe", "4"), row("ADA", day, 2*day, 9, "ada", "3"), row("RSK", time.Hour, 2*day, 1, "a", "2"),
		row("DUE", 2*day, 2*day, 1, "a", "8"), row("LAT", 3*day, 2*day, 9, "a", "1"), unread,
	}
	order := func(list []report.Listed) (ends string) {
		for _, l := range report.Queue(list, now) {
			ends += l.Notes + " "
		}
		return ends
	}
	if got, want := order(list), "UNR LAT DUE RSK ADA ZOE NEW END "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	text := report.Screen(report.Queue(list, now), now, 80, report.Style{Colour: true, Zone: time.FixedZone("CET", 3600)})
	if late := "\x1b[31m3CJ7LAT  overdue since 2026-11-22  3 days"; !strings.Contains(text, late) || strings.Count(text, "overdue") != 2 || strings.Contains(text, "\x1b[31m3CJ7END") {
		t.Errorf("%q is not in\n%s", late, text)
	}
	a, b, c := row("AAA", day, 0, 3, "bot", "1"), row("BBB", 2*day, 0, 3, "bot", "1"), row("CCC", day, 0, 5, "bot", "2")
	a.In, b.In, c.In = []string{"acme/a"}, []string{"acme/\x1bb"}, []string{"acme/c"}
	text = report.Screen(report.Queue([]report.Listed{a, b, c}, now), now, 100, report.Style{})
	if want := "3CJ7BBB  waits for approval  2 days  bot  in acme/\\x1bb, acme/a: \"BBB\"\n3CJ7CCC  waits for approval  1 day   bot  in acme/c: \"CCC\"\n"; !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if got := order([]report.Listed{row("AAA", day, 0, 3, "bot", "1"), row("BBB", 2*day, 0, 3, "bot", "1")}); got != "BBB AAA " { // each is decided by itself
		t.Errorf("in one repository: %s", got)
	}
}
