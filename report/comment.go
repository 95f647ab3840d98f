package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// CommentMarker is the last line of a Comment's body, by which it is found.
const CommentMarker = "<!-- countersign:report -->"

// Notes that a Comment can carry.
const (
	NoteNoCI  = `The token that pushes does not start CI on the new commit: press "Approve workflows to run" on the pull request, or give an App's token as push-token.`
	NoteTeams = "The members of teams cannot be read with this token, so nobody counts as one. An App's token with the permission members: read can."
)

// A Comment is the one comment of a pull request, updated in place: what became
// of each of its transactions, in any order.
type Comment struct {
	Transactions []Report
	Threads      map[string]string // by transaction: the address of its request
	Notes        []string          // plain text, a line each
	Obstacles    []Obstacle
	// Told is what was told of each transaction in full, its check runs too. The
	// next run reads it with ToldIn, and tells again what is not there.
	Told map[string]ledger.Status
}

const (
	toldMark    = "<!-- countersign:told"
	toldMarkEnd = " -->"
	maxTold     = 200 // transactions, the newest
)

// told is the line that ToldIn reads.
func (c Comment) told() string {
	ids := slices.Sorted(maps.Keys(c.Told))
	line := toldMark
	for _, id := range ids[max(0, len(ids)-maxTold):] {
		line += " " + id + "=" + string(c.Told[id])
	}
	return line + toldMarkEnd + "\n"
}

// ToldIn reads Comment.Told back from a body; nil where that is no Comment's.
func ToldIn(body string) map[string]ledger.Status {
	lines := strings.Split(strings.TrimSpace(body), "\n")
	if len(lines) < 2 || lines[len(lines)-1] != CommentMarker {
		return nil
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(lines[len(lines)-2]), toldMark)
	if !ok {
		return nil
	}
	told := map[string]ledger.Status{}
	for _, one := range strings.Fields(strings.TrimSuffix(text, toldMarkEnd)) {
		id, status, _ := strings.Cut(one, "=")
		told[id] = ledger.Status(status)
	}
	return told
}

const (
	// inFull is how many transactions are shown whole; the others get a line.
	inFull = 4
	// maxLines is the room of these lines, and of the notes.
	maxLines = 14 << 10
)

// Body is the comment, of at most MaxComment bytes: transactions that are still
// open first, then the newest.
func (c Comment) Body() string {
	list := c.ordered()
	full := list[:min(len(list), inFull)]
	tail := newPage(maxLines)
	c.writeLines(tail, list[len(full):])
	below := tail.String() + c.told() + CommentMarker + "\n"
	p := newPage(MaxComment - len(below))
	p.write(c.broken() + obstacleBox(c.Obstacles))
	if len(full) == 0 {
		p.write("### countersign: nothing is proposed\n\n")
	}
	for i, r := range full {
		share := newPage(p.left / (len(full) - i))
		c.writeOne(share, r)
		p.write(share.String())
	}
	return p.String() + below
}

func (c Comment) writeOne(p *page, r Report) {
	r.write(p, "###")
	if url := c.Threads[r.TransactionID]; url != "" && r.waits() {
		p.write("The diff, and a thread to reply in: " + link("the request", url) + ".\n\n")
	}
}

// ordered has the open ones first, then by id from the newest, which is by time.
func (c Comment) ordered() []Report {
	out := slices.Clone(c.Transactions)
	slices.SortStableFunc(out, func(a, b Report) int {
		return cmp.Or(over(a)-over(b), strings.Compare(b.TransactionID, a.TransactionID))
	})
	return out
}

// over is 1 for a transaction that has ended.
func over(r Report) int {
	switch r.Status {
	case ledger.Completed, ledger.Failed, ledger.Interrupted, ledger.Denied, ledger.Superseded:
		return 1
	}
	return 0
}

// broken names the transactions that went through on a break-glass, first of all.
func (c Comment) broken() string {
	var ids []string
	for _, r := range c.Transactions {
		if r.glassBroken() {
			ids = append(ids, r.TransactionID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return caution("**" + glassWarning + ":** " + codes(ids, maxNames))
}

// writeLines writes one line for each of the others, and the notes.
func (c Comment) writeLines(p *page, others []Report) {
	p.list(list{"", points("Note", c.Notes), maxNames, "note", ""})
	p.list(list{"Also on this pull request:\n\n", each(others, Report.line), 40, "transaction", ", " + code("countersign list") + " has all"})
}

// line is a transaction in one line, with the line to copy while it waits.
func (r Report) line() string {
	text := fmt.Sprintf("- transaction %s: **%s**, %s", name(r.TransactionID), r.headline(), r.filesLine())
	if r.waits() {
		for _, n := range r.missing() {
			text += ", " + code("/approve "+n.Fingerprint)
		}
	}
	return text + "\n"
}
