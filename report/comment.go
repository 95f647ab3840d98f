package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// CommentMarker is the last line of a Comment's body, by which it is found.
const CommentMarker = "<!-- countersign:report -->"

// Notes that a Comment can carry.
const (
	NoteNoCI  = `The token that pushes does not start CI on the new commit: press "Approve workflows to run" on the pull request, or give an App's token as push-token.`
	NoteTeams = "This token cannot read the members of teams, so nobody counts as one. Use an App's token with the permission members: read."
	// NoteUnanswered is of a server that was down, or failed.
	NoteUnanswered = "A server did not answer, several times, so this is not finished. Nothing that was decided is lost, and nobody has to do it again: the next run goes on, which the next decision or push on any pull request here starts, or the schedule."
)

// A Comment is the one comment of a pull request, updated in place: what became
// of each of its transactions, in any order.
type Comment struct {
	Transactions []Report
	Web          string            // Links.Web
	Threads      map[string]string // by transaction: the address of its request
	Notes        []string          // plain text, a line each
	Obstacles    []Obstacle
	Cut          bool // not all of it could be read or done
	// Told is what was told of each transaction in full, its check runs too. The
	// next run reads it with ToldIn, and tells again what is not there.
	Told map[string]ledger.Status
}

// maxTold is how many transactions are remembered, the newest.
const maxTold = 200

// told is the line that ToldIn reads.
func (c Comment) told() string {
	ids := slices.Sorted(maps.Keys(c.Told))
	var fields []string
	for _, id := range ids[max(0, len(ids)-maxTold):] {
		fields = append(fields, id+"="+string(c.Told[id]))
	}
	return marker("told", fields...)
}

// ToldIn reads Comment.Told back from a body; nil where that is no Comment's.
func ToldIn(body string) map[string]ledger.Status {
	lines := strings.Split(strings.TrimSpace(body), "\n")
	if len(lines) < 2 || lines[len(lines)-1] != CommentMarker {
		return nil
	}
	fields, ok := marked(lines[len(lines)-2], "told")
	if !ok {
		return nil
	}
	told := map[string]ledger.Status{}
	for _, one := range fields {
		id, status, _ := strings.Cut(one, "=")
		told[id] = ledger.Status(status)
	}
	return told
}

// A marker is a line of a comment or a check run that this program reads again, and people do not see.
func marker(kind string, fields ...string) string {
	return "<!-- countersign:" + strings.Join(append([]string{kind}, fields...), " ") + " -->\n"
}

// marked reads the fields of a marker.
func marked(line, kind string) (fields []string, ok bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "<!-- countersign:"+kind+" ")
	return strings.Fields(strings.TrimSuffix(text, "-->")), ok
}

const (
	// inFull is how many transactions are shown whole; the others get a line.
	inFull = 4
	// maxLines is the room of these lines, and of the notes.
	maxLines = 14 << 10
)

// Body is the comment, of at most MaxComment bytes: transactions that are still
// open first, of these the proposals, whose writing makes the pull request's own diff
// another one; then the newest.
func (c Comment) Body() string {
	all := slices.SortedStableFunc(slices.Values(c.Transactions), func(a, b Report) int { // by id is by time
		return cmp.Or(order(a)-order(b), strings.Compare(b.TransactionID, a.TransactionID))
	})
	full := all[:min(len(all), inFull)]
	tail := newPage(maxLines)
	tail.list(list{"", points("Note", c.Notes), maxNames, "note", ""})
	tail.list(list{"Also on this pull request:\n\n", each(all[len(full):], Report.line), 40, "transaction", ", " + code("countersign list") + " has all"})
	below := tail.String() + c.told() + CommentMarker + "\n"
	p := newPage(MaxComment - len(below))
	p.write(c.broken() + string(paragraphs().Fill(nil, "obstacles", c.Obstacles[:min(len(c.Obstacles), 5)], nil)))
	switch {
	case len(full) > 0:
	case c.Cut:
		p.write("### Countersign: not finished\n\n")
	default:
		p.write("### Countersign: nothing is proposed\n\n")
	}
	for i, r := range full {
		to := Links{Web: c.Web, Thread: c.Threads[r.TransactionID]}
		for _, old := range all {
			if slices.Contains(r.Supersedes, old.TransactionID) {
				to.before = append(to.before, old.View().Approvers(old.verdict().BreakGlass)...)
			}
		}
		share := newPage(p.left / (len(full) - i))
		r.write(share, to)
		p.write(share.String())
	}
	return p.String() + below
}

// order is that of transactions in a comment, without their time.
func order(r Report) int {
	switch {
	case over(r):
		return 2
	case r.GateOnly:
		return 1
	}
	return 0
}

// over reports whether a transaction has ended.
func over(r Report) bool {
	return slices.Contains([]ledger.Status{ledger.Completed, ledger.Failed, ledger.Interrupted, ledger.Denied, ledger.Superseded}, r.Status)
}

// broken names the transactions that went through on a break-glass, first of all.
func (c Comment) broken() string {
	var ids []string
	for _, r := range c.Transactions {
		if r.verdict().BreakGlass {
			ids = append(ids, r.TransactionID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return caution("**" + glassWarning + ":** " + codes(ids, maxNames))
}

// line is a transaction in one line, with the line to copy while it waits.
func (r Report) line() string {
	text := fmt.Sprintf("- transaction %s: **%s**, %s", r.linked(), r.says(words, Links{}.short(r.AppliedCommit)), r.filesLine())
	if r.waits() {
		for _, n := range r.missing() {
			if n.Signed {
				return text + ", " + r.sign() + "\n"
			}
			text += ", " + code("/approve "+n.Fingerprint)
		}
	}
	return text + "\n"
}

// An Obstacle is why an approved change could not be written, told before
// anybody is asked. What and Instead are one line each, in words of ours.
type Obstacle struct {
	Code    string `json:"code"`
	What    string `json:"what"`
	Instead string `json:"instead"`
}
