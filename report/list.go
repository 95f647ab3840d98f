package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/view"
)

// IDs are the ids of transactions, one a line.
func IDs(list []ledger.Transaction) string {
	return Style{}.fill("list", list)
}

// A Listed transaction has what a line needs.
type Listed struct {
	ledger.Transaction
	State   plain.State
	Verdict approval.State // "" of one that has ended
	By      []string       // who approved, as far as their approvals count

	// In a queue:
	Turn lookup.Turn
	In   []string // the repositories that wait for the same change, nil where it is clear
}

// Queue puts what waits first, in the order in which people are to look, then the others as they are. Of the same change
// to several repositories it has the first, with the names of all.
func Queue(list []Listed, now time.Time) (out []Listed) {
	list = slices.SortedStableFunc(slices.Values(list), func(a, b Listed) int {
		if a.State == plain.Waits && b.State == plain.Waits {
			return a.Turn.Compare(b.Turn, now)
		}
		return rankOf(b) - rankOf(a)
	})
	at := map[string]int{}
	for _, l := range list {
		i, known := at[l.PatchID()]
		if l.State != plain.Waits || l.In == nil || !known {
			if l.State == plain.Waits {
				at[l.PatchID()] = len(out)
			}
			out = append(out, l)
			continue
		}
		out[i].In = append(slices.Clip(out[i].In), l.In...)
	}
	return out
}

// Documents are what --json has of a list (docs/schema/list.json).
func Documents(list []Listed) []any {
	out := []any{}
	for _, l := range list {
		doc := map[string]any{
			"transaction_id": l.TransactionID, "status": string(l.Status), "state": string(l.State), "closed": l.Closed, "patch_id": l.PatchID(),
			"created_at": l.CreatedAt, "updated_at": l.UpdatedAt, "summary": l.Notes, "proposer": l.Proposer.Login,
		}
		if !l.Turn.Due.IsZero() {
			doc["due_at"] = ledger.FormatTime(l.Turn.Due)
		}
		if l.In != nil {
			doc["repository"] = l.In[0]
		}
		if l.Verdict != "" {
			doc["verdict"] = string(l.Verdict)
		}
		out = append(out, doc)
	}
	return out
}

// About is what it is for, in quotation marks; or what it does to which files.
func (l Listed) About() string {
	if l.Notes != "" {
		return Quoted(l.Notes)
	}
	return "(" + Clean(lookup.Does(l.Transaction)) + ")"
}

// List has a line for each transaction, for programs and logs: the id, where it stands, the
// patch's first digits, when it was proposed in UTC, what it is for.
func List(list []Listed) string {
	return view.Joined(list, "", func(t Listed) string {
		return fmt.Sprintf("%s  %-22s  %.12s  %.19sZ  %s\n", t.TransactionID, t.State, Clean(t.PatchID()), Clean(t.CreatedAt), t.About())
	})
}

// Fit are those of a list that a screen of some rows has room for, what waits last, which is never left
// out; and how many are.
func Fit(list []Listed, rows int) (fitting []Listed, left int) {
	list = slices.SortedStableFunc(slices.Values(list), func(a, b Listed) int { return rankOf(a) - rankOf(b) })
	if len(list)+2 > rows { // the head, and the shell's next prompt
		left = min(len(list)+3-rows, len(list))
		for left > 0 && list[left-1].State == plain.Waits {
			left--
		}
	}
	return list[left:], left
}

// Older is the line on what was left out, which a command shows.
func Older(left int, all string) string {
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("%d older: %s\n", left, all)
}

// Screen is a list for a person, at a time and on a screen of some columns. An id is shown by its
// end, which is what differs from one to the next.
func Screen(list []Listed, now time.Time, width int, s Style) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	lines, wide := [][4]string{{"ID", "STATE", "AGE", "BY"}}, [4]int{}
	for _, t := range list {
		age := ""
		if made, err := time.Parse(time.RFC3339Nano, t.CreatedAt); err == nil {
			age = Age(now.Sub(made))
		}
		state := string(t.State)
		if t.overdue(now) {
			state = "overdue since " + t.Turn.Due.In(cmp.Or(s.Zone, time.UTC)).Format(time.DateOnly)
		}
		lines = append(lines, [4]string{lookup.ShortID(t.TransactionID), state, age, Clean(t.Proposer.Login)})
	}
	for _, line := range lines {
		for i, text := range line {
			wide[i] = max(wide[i], min(columns(text), 24-10*(i/3))) // of a name 14
		}
	}
	for i, line := range lines {
		text, about, colour := "", "SUMMARY", bold
		for i, one := range line {
			text += fit(one, wide[i]) + "  "
		}
		if i > 0 {
			t := list[i-1]
			about, colour = t.About(), tones[t.State.Tone()]
			if t.In != nil {
				about = "in " + Clean(strings.Join(t.In, ", ")) + ": " + about
			}
			if t.overdue(now) {
				colour = red
			}
			if by := "  approved by " + Clean(strings.Join(t.By, ", ")); len(t.By) > 0 && columns(text+about+by) <= width {
				about += by
			}
		}
		b.WriteString(s.paint(colour, strings.TrimRight(fit(text+about, width), " ")) + "\n")
	}
	return b.String()
}

// overdue reports whether people should have decided on it by now.
func (l Listed) overdue(now time.Time) bool { return l.State == plain.Waits && l.Turn.Overdue(now) }

// rankOf is 0 of what has ended, more of what somebody has something to do about.
func rankOf(l Listed) int {
	switch {
	case l.State == plain.Waits:
		return 2
	case !l.Closed:
		return 1
	}
	return 0
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
		of        time.Duration
		one, many string
	}{{365 * 24 * time.Hour, "year", "years"}, {24 * time.Hour, "day", "days"}, {time.Hour, "hour", "hours"}, {time.Minute, "min", "min"}} {
		if n := int(d / unit.of); n > 0 {
			return ledger.Plural(n, unit.one, unit.many)
		}
	}
	return "now"
}

// maxOpenShown is how many open transactions an error lists; `list --open` lists
// them all.
const maxOpenShown = 20

// OpenLines are what is open, a line each.
func OpenLines(open []Listed) []string {
	var out []string
	for _, t := range open[max(0, len(open)-maxOpenShown):] {
		out = append(out, fmt.Sprintf("%s  %s  %s, by %s", lookup.ShortID(t.TransactionID), t.State, t.About(), Clean(t.Proposer.Login)))
	}
	if n := len(open) - len(out); n > 0 {
		out = slices.Insert(out, 0, Counted(n, "older one"))
	}
	return out
}

// DeniedThere is the line on a transaction that was open here, and that the remote has a denial of.
func DeniedThere(tx ledger.Transaction, d *ledger.ApprovalDecision, approvedHere bool) string {
	return fmt.Sprintf("denied there: %s %s by %s: %s%s\n", lookup.ShortID(tx.TransactionID), Listed{Transaction: tx}.About(), Clean(d.Source.Author.Login), Clean(d.Reason),
		map[bool]string{true: " (the approval here does not count any more)"}[approvedHere])
}

// AppliedTwice is the line on a transaction that was applied here, as a commit or, where that is "", to the working tree,
// and by somebody else, whose record stands on a remote. aside is the ref that keeps the one of here.
func AppliedTwice(tx ledger.Transaction, commit, remote, aside string) string {
	where := "to the working tree"
	if commit != "" {
		where = fmt.Sprintf("as %.12s", commit)
	}
	return fmt.Sprintf("applied here too: %s %s, %s; the record is %s's, and what was here is kept on %s\n", lookup.ShortID(tx.TransactionID), Listed{Transaction: tx}.About(), where, Clean(remote), aside)
}

// Publishes says what a first sync shows to all who may read the repository at an address.
func Publishes(ref, address string, patches, mails int) string {
	return fmt.Sprintf("This makes %s on %s, readable by all readers of the repository: %s, %s.", ref, Clean(address), Counted(patches, "patch"), Counted(mails, "e-mail address"))
}
