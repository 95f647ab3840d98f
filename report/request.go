package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// A Request is the comment that opens the thread in which people decide. It is
// never edited, so it tells nothing that changes, and its text follows from its
// fields alone: a run that was cut off finds its comment again by the bytes.
type Request struct {
	Report    Report // of the transaction as it was proposed; its Verdict is not looked at
	Diff      []byte // canonical bytes, without secrets
	Needs     []policy.Need
	Approvals policy.Approvals
	Commands  []string // that will run before anything is written
	Obstacles []Obstacle
	Notes     []string // plain text, a line each
}

// RequestMarker is the last line of a Request's body, by which it is found.
func RequestMarker(transactionID string) string {
	return "<!-- countersign:request:" + unmarked().ReplaceAllString(transactionID, "") + " -->"
}

var unmarked = lazyregexp.New(`[^A-Za-z0-9_]`)

// The room of the parts beside the diff: what stands below it, the files, and
// the characters that do not show.
const (
	maxTail   = 16 << 10
	maxFiles  = 12 << 10
	maxPlaces = 6 << 10
)

// Body is the comment, of at most MaxComment bytes: the question and the lines
// to copy first, then the files and as much of the diff as fits.
func (q Request) Body() string {
	marker := RequestMarker(q.Report.TransactionID) + "\n"
	tail := newPage(maxTail)
	q.writeTail(tail)
	below := tail.String() + marker
	head := newPage(MaxComment - len(below) - maxWarning)
	q.writeHead(head)
	above := head.String()
	diff := fold(q.Diff, MaxComment-len(below)-len(above)-maxWarning)
	return above + q.cutWarning(diff) + diff.String() + below
}

// maxWarning is the room of cutWarning.
const maxWarning = 2 << 10

// cutWarning says loudly that a part of the diff is not shown.
func (q Request) cutWarning(f folded) string {
	if !f.cut() {
		return ""
	}
	text := fmt.Sprintf("**The diff is cut: %d of its %d lines are shown here.** See all of it before you decide:", f.shown, f.total)
	return warning(text) + q.Report.seeDiff()
}

// writeHead writes what matters most.
func (q Request) writeHead(p *page) {
	p.write("### countersign: do you approve this change?\n\n" + q.question())
	p.write(obstacleBox(q.Obstacles))
	p.write(q.secretWarning())
	p.write(approveBlocks(q.asked()) + denyBlock(q.Report.Fingerprint))
	p.write("Or reply in this thread, with `/approve` alone for the change itself, or with `/deny` and your reason. Only the first line counts, exactly as it stands.\n\n")
	p.write(q.Report.greenHint())
	q.writeHidden(p)
	p.within(maxFiles, q.Report.files(100))
}

func (q Request) question() string {
	what := " proposes to change "
	then := "Nothing is written before people approved exactly these bytes."
	if q.Report.GateOnly {
		what = " brings with this pull request "
		then = "This is the pull request's own diff. The check `countersign` succeeds once people approved exactly these bytes."
	}
	return name(q.Report.Proposer.Login) + what + q.Report.filesLine() + ". " + then + "\n\n"
}

// secretWarning is there where the patch adds what looks like a secret.
func (q Request) secretWarning() string {
	for _, n := range q.Needs {
		if n.Kind == policy.KindSecret {
			return caution("**This change adds what looks like a secret.** It is masked below; the fingerprint is of the real bytes. Approve it only if it is none, or if it is meant to be there.")
		}
	}
	return ""
}

// asked are the needs as nobody has answered them.
func (q Request) asked() []approval.Need {
	v := approval.Verdict{}
	for _, n := range q.Needs {
		v.Needs = append(v.Needs, approval.Need{Kind: n.Kind, Fingerprint: n.Prefix + q.Report.Fingerprint, Required: max(1, n.Required)})
	}
	return Report{Verdict: &v}.missing()
}

// writeHidden lists what does not show in the lines that are changed.
func (q Request) writeHidden(p *page) {
	rows := each(hiddenIn(q.Diff), func(h hidden) string { return h.row(q.Report.Files) })
	head := warning("**This change has characters that do not show, or bytes that are not UTF-8.** They can make code look like what it is not. The diff has them as escapes.")
	p.within(maxPlaces, list{head, rows, 30, "more such place", ", " + code("countersign diff "+q.Report.TransactionID) + " shows all"})
}

// writeTail writes what is needed, by whom, and where it all comes from.
func (q Request) writeTail(p *page) {
	p.write(q.origin())
	p.write(q.conditions())
	p.list(list{"Needed, under the Policy:\n\n", each(q.Needs, needRow), maxNames, "need", ""})
	commands := each(q.Commands, func(c string) string { return "- " + name(c) + "\n" })
	p.list(list{"Commands that run first, in a sandbox:\n\n", commands, maxNames, "command", ""})
	p.list(list{"", points("Note", q.Notes), maxNames, "note", ""})
}

// origin says which transaction this is, whose, and what it is for.
func (q Request) origin() string {
	r := q.Report
	rows := []string{"transaction " + name(r.TransactionID) + " on " + name(r.BaseCommit)}
	rows = append(rows, "the same diff in a clone: "+name("countersign diff "+r.TransactionID))
	if r.Summary != "" {
		rows = append(rows, name(r.Proposer.Login)+" says what it is for: "+words(r.Summary))
	}
	if r.Confidence != nil {
		rows = append(rows, fmt.Sprintf("the proposer's own confidence: %d of 100", *r.Confidence))
	}
	return "- " + strings.Join(rows, "\n- ") + "\n\n"
}
