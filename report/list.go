package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// IDs are the ids of transactions, one a line.
func IDs(list []ledger.Transaction) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(t.TransactionID + "\n")
	}
	return b.String()
}

// List has a line for each transaction, for programs and logs: the id, the status, the
// patch's first digits, when it was proposed in UTC, the summary in quotation marks.
func List(list []ledger.Transaction) string {
	var b strings.Builder
	for _, t := range list {
		fmt.Fprintf(&b, "%s  %-17s  %.12s  %.19s  %s\n", t.TransactionID, t.Status, Clean(t.PatchID()), Clean(t.CreatedAt), Quoted(t.Notes))
	}
	return b.String()
}

// Screen is a list for a person, at a time in their zone and on a screen of some columns.
// An id is shown by its end, which is what differs from one to the next. A narrow screen
// has no room for the year and the proposer.
func Screen(list []ledger.Transaction, now time.Time, columns int, s Style) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	layout, proposer := "01-02 15:04", 0
	if columns >= 110 {
		layout, proposer = "2006-01-02 15:04", 16
	}
	line := func(id, status, age, at, by, summary string) string {
		text := fmt.Sprintf("%-7s  %-17s  %-8s  %-*s  ", id, status, age, len(layout), at)
		if proposer > 0 {
			text += fit(by, proposer) + "  "
		}
		return strings.TrimRight(fit(text+summary, columns), " ")
	}
	b.WriteString(s.Bold(line("ID", "STATUS", "AGE", "PROPOSED", "BY", "SUMMARY")) + "\n")
	for _, t := range list {
		age, at := "", ""
		if made, err := time.Parse(time.RFC3339Nano, t.CreatedAt); err == nil {
			age, at = Age(now.Sub(made)), made.In(now.Location()).Format(layout)
		}
		id := t.TransactionID[max(0, len(t.TransactionID)-7):]
		b.WriteString(line(id, string(t.Status), age, at, Clean(t.Proposer.Login), Quoted(t.Notes)) + "\n")
	}
	return b.String()
}

// fit is a text in exactly so many columns: filled up, or cut off.
func fit(text string, columns int) string {
	wide := 0
	for i, r := range text {
		next := wide + columnsOf(r, wide)
		if next > columns || next == columns && i+utf8.RuneLen(r) < len(text) {
			return text[:i] + "…" + strings.Repeat(" ", columns-wide-1)
		}
		wide = next
	}
	return text + strings.Repeat(" ", columns-wide)
}

// Age is how long ago something was, in its largest unit.
func Age(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{365 * 24 * time.Hour, "year"}, {24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "min"}} {
		if n := int(d / unit.of); n > 1 && unit.name != "min" {
			return fmt.Sprintf("%d %ss", n, unit.name)
		} else if n > 0 {
			return fmt.Sprintf("%d %s", n, unit.name)
		}
	}
	return "now"
}

// maxOpenShown is how many open transactions an error lists; `list --open` lists
// them all.
const maxOpenShown = 20

// OpenLines are what is open, a line each.
func OpenLines(open []ledger.Transaction) []string {
	var out []string
	for _, t := range open[max(0, len(open)-maxOpenShown):] {
		out = append(out, t.TransactionID+"  "+Says(t.Proposer.Login, t.Notes))
	}
	if n := len(open) - len(out); n > 0 {
		out = slices.Insert(out, 0, Counted(n, "older one"))
	}
	return out
}
