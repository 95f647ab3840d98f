package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/ledger"
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
	Web       string   // Links.Web
	Policy    PolicyFile
}

// RequestMarker is the last line of a Request's body, by which it is found.
func RequestMarker(transactionID string) string {
	return "<!-- countersign:request:" + unmarked().ReplaceAllString(transactionID, "") + " -->"
}

var unmarked = lazyregexp.New(`[^A-Za-z0-9_]`)

// The room of the parts beside the diff: what stands below it, the files, and
// the characters that do not show.
const (
	maxTail   = 20 << 10
	maxFiles  = 10 << 10
	maxPlaces = 4 << 10
	// maxWarning is for the words that the diff is cut.
	maxWarning = 2 << 10
)

// Body is the comment, of at most MaxComment bytes, in the order in which a person
// reads: who wants what and why, what may be overlooked, as much of the diff as
// fits, what an approval does, and how to answer. The rest is folded below.
func (q Request) Body() string {
	marker := RequestMarker(q.Report.TransactionID) + "\n"
	tail := newPage(maxTail)
	q.writeTail(tail)
	below := tail.String() + marker
	head := newPage(MaxComment - len(below) - maxWarning)
	q.writeHead(head)
	above := head.String()
	diff := fold(q.Diff, MaxComment-len(below)-len(above)-maxWarning)
	if diff.cut() {
		text := fmt.Sprintf("**The diff is cut: %d of its %d lines are shown here.** See all of it before you decide:", diff.shown, diff.total)
		above += warning(text) + q.Report.seeDiff()
	}
	return above + diff.String() + below
}

// Is reports whether a body is that of the request: perhaps of another run, which showed the
// record as another commit of the ledger has it.
func (q Request) Is(body string) bool {
	mine, of := q.Body(), q.Report
	before, after, has := strings.Cut(mine, of.record())
	if of.record() == "" || !has {
		return body == mine
	}
	rest, begins := strings.CutPrefix(body, before)
	rest, ends := strings.CutSuffix(rest, after)
	commit := shownAt().FindStringSubmatch(rest)
	if !begins || !ends || commit == nil {
		return false
	}
	of.MoveLedger(commit[1])
	return rest == of.record()
}

// shownAt is the commit in the address of a record.
var shownAt = lazyregexp.New(`/([0-9a-f]{40})/`)

// writeHead writes the question, and what to know before it is answered.
func (q Request) writeHead(p *page) {
	p.write("### countersign: do you approve this change?\n\n" + q.Report.wants(false) + q.Report.record())
	p.write(obstacleBox(q.Obstacles))
	if slices.ContainsFunc(q.Needs, func(n policy.Need) bool { return n.Kind == policy.KindSecret }) {
		p.write(caution("**This change adds what looks like a secret.** The diff is shown without it" + masked(q.Diff) + "; the fingerprint is of the real bytes. Approve it only if it is not a secret, or is meant to be there."))
	}
	p.write(q.Report.risks(p.left, q.links()))
	rows := each(hiddenIn(q.Diff), func(h hidden) string { return h.row(q.Report.Files) })
	head := warning("**This change has invisible characters, or bytes that are not UTF-8.** They can make code look like something else. The diff shows them as escapes.")
	p.within(maxPlaces, list{head, rows, 30, "more such place", ", " + code("countersign diff "+q.Report.TransactionID) + " shows all"})
	p.within(maxFiles, q.Report.files(100))
	p.write(q.Report.claimsBlock())
}

// writeTail writes what an approval does and how to answer, and folded which
// transaction this is, what is needed, and by whom.
func (q Request) writeTail(p *page) {
	p.write(q.Report.approving())
	p.write(q.answers())
	p.folded("Ids, who may approve, and what runs first", q.writeDetails)
}

// answers says how to answer: the shortest safe way first. A reply of one word is
// about the bytes that its thread began with; elsewhere the full line names them.
func (q Request) answers() string {
	var change, others []approval.Need
	for _, n := range q.Needs {
		need := approval.Need{Kind: n.Kind, Fingerprint: n.Prefix + q.Report.Fingerprint, Required: max(1, n.Required), Signed: n.Signed}
		if n.Kind == policy.KindFileChange {
			change = append(change, need)
		} else {
			others = append(others, need)
		}
	}
	unanswered := func(needs []approval.Need) string {
		r := q.Report
		r.Verdict = &approval.Verdict{Needs: needs}
		return r.approveBlocks()
	}
	if len(change) > 0 && change[0].Signed {
		return q.Report.signBlock() + "To deny it for good, reply here with " + code("/deny") + " and your reason.\n\n"
	}
	text := "**To answer, reply here** with one line, exactly as it stands:\n\n" + lineBlock("/approve") +
		"\nor " + code("/deny") + " and your reason, which refuses this change for good.\n\n"
	if len(others) > 0 {
		text += "That line approves the change itself. These approvals are needed as well, each with its own line:\n\n" + unanswered(others)
	}
	return text + q.Report.greenHint() + "Anywhere else on the pull request, use the full line:\n\n" + unanswered(change) + denyBlock(q.Report.Fingerprint)
}

func (q Request) links() Links { return Links{Web: q.Web, Policy: q.Policy} }

func (q Request) writeDetails(p *page) {
	r := q.Report
	links := q.links()
	rows := []string{
		"transaction " + name(r.TransactionID) + " on " + links.commit(r.BaseCommit),
		"the same diff in a clone: " + name("countersign diff "+r.TransactionID),
	}
	if r.Confidence != nil {
		rows = append(rows, fmt.Sprintf("the proposer's own confidence: %d of 100", *r.Confidence))
	}
	p.write("- " + strings.Join(rows, "\n- ") + "\n\n")
	p.write(q.conditions())
	p.list(list{"Needed, under " + links.policy() + ":\n\n", each(q.Needs, needRow), maxNames, "need", ""})
	if r.GateOnly { // which is not applied
		q.Commands = nil
	}
	commands := each(q.Commands, func(c string) string { return "- " + name(c) + "\n" })
	p.list(list{"Commands that run first, in a sandbox:\n\n", commands, maxNames, "command", ""})
	p.list(list{"", points("Note", q.Notes), maxNames, "note", ""})
}

// maxNames is how many paths, people or commands are named in one place.
const maxNames = 20

// needRow says in words what one need asks for.
func needRow(n policy.Need) string {
	who := Counted(max(1, n.Required), "person")
	if n.Names() {
		who += ", each " + people(n)
	}
	row := "- " + cmp.Or(kindWords[n.Kind].list, prose(n.Kind)) + ": " + who
	if len(n.Paths) > 0 {
		row += ", for " + codes(n.Paths, maxNames)
	}
	return row + "\n"
}

// people names whom a need is for.
func people(n policy.Need) string {
	var who []string
	if len(n.Users) > 0 {
		who = append(who, "one of "+codes(n.Users, maxNames))
	}
	if len(n.Teams) > 0 {
		who = append(who, "a member of "+codes(n.Teams, maxNames))
	}
	if n.Owners {
		who = append(who, "one of each path's code owners")
	}
	return strings.Join(who, " or ")
}

// conditions says in words which approvals count under the Policy.
func (q Request) conditions() string {
	a := q.Approvals
	rows := []string{"people with the permission " + name(string(a.Permission)) + " or more, which is checked again before anything is written"}
	switch {
	case q.Report.GateOnly && a.AllowAuthor:
		rows = append(rows, "those who wrote the change may approve it too")
	case q.Report.GateOnly:
		rows = append(rows, "nobody who wrote the change")
	case a.AllowAuthor:
		rows = append(rows, "the proposer may approve as well, but not what looks like a secret")
	default:
		rows = append(rows, "not the proposer")
	}
	rows = append(rows, "no bot, no app, no e-mail; an edited comment does not count")
	if a.MaxAge > 0 {
		rows = append(rows, "an approval holds for "+age(time.Duration(a.MaxAge)))
	}
	if a.SameHead {
		rows = append(rows, "an approval holds only for the commit that it was made on: a push ends it")
	}
	if row := driftRow(a.Drift); row != "" {
		rows = append(rows, row)
	}
	return "Who may approve:\n\n- " + strings.Join(rows, "\n- ") + "\n\n"
}

// age is a duration in the largest unit that it is a whole number of.
func age(d time.Duration) string {
	for _, unit := range []struct {
		name string
		long time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if d%unit.long == 0 {
			return Counted(int(d/unit.long), unit.name)
		}
	}
	return fmt.Sprint(d)
}

// A folded diff is as much of a diff as there is room for, in a code block that
// opens on a click where it is long. What does not print is shown as an escape (T14).
type folded struct {
	text  string // of the lines, each with its LF
	run   int    // the longest run of backticks
	shown int    // lines
	total int
}

const (
	foldHead = "<details><summary>The diff, %s</summary>\n\n"
	foldTail = "\n</details>\n\n"
	// openLines is how long a diff is shown as it is.
	openLines = 40
	// foldCost is more than what stands around the lines, the two fences apart.
	foldCost = len(foldHead) + len(foldTail) + 40
)

// fold takes lines, from the first, while they fit into room bytes.
func fold(diff []byte, room int) folded {
	var f folded
	var b strings.Builder
	for line := range bytes.Lines(diff) {
		f.total++
		if f.shown+1 < f.total {
			continue // one did not fit before
		}
		text := Style{}.reveal(strings.TrimSuffix(string(line), "\n")) + "\n"
		run := max(f.run, backticks(text))
		if b.Len()+len(text)+2*len(fenceFor(run))+foldCost > room {
			continue
		}
		b.WriteString(text)
		f.run, f.shown = run, f.shown+1
	}
	f.text = b.String()
	return f
}

func (f folded) cut() bool { return f.shown < f.total }

func (f folded) String() string {
	if f.shown == 0 {
		return ""
	}
	size := Counted(f.total, "line")
	if f.total <= openLines && !f.cut() {
		return fenced("diff", f.text) + "\n"
	}
	if f.cut() {
		size = fmt.Sprintf("%d of its %d lines", f.shown, f.total)
	}
	return fmt.Sprintf(foldHead, size) + fenced("diff", f.text) + foldTail
}

var plainRef = lazyregexp.New(`^refs/[A-Za-z0-9][A-Za-z0-9/_.-]*$`)

// maxRef bounds a ref that is shown in a command.
const maxRef = 200

// seeDiff says how to see the whole patch; with git alone where the ledger is in
// the repository itself, and its ref can stand in a shell as it is.
func (r Report) seeDiff() string {
	lines := "countersign diff " + Clean(r.TransactionID) + "\n"
	if r.LedgerWeb == "" && len(r.LedgerRef) <= maxRef && plainRef().MatchString(r.LedgerRef) && ledger.CheckID(r.TransactionID) == nil {
		lines += "git fetch origin " + r.LedgerRef + "\ngit show FETCH_HEAD:" + ledger.Dir(r.TransactionID) + "/" + ledger.PatchFile(Clean(r.PatchID)) + "\n"
	}
	return fenced("sh", lines) + "\n"
}

// OpenedBody is the text of a pull request that was opened for a transaction: who wants
// what, what may be overlooked, which bytes these are, and how to answer.
func OpenedBody(r Report) string {
	p := newPage(MaxComment)
	p.write("### A change that waits for approval\n\n" + r.wants(false))
	p.write(r.risks(p.left/2, Links{}))
	p.write("**To approve it, review this pull request and press Approve.** The review is of the diff that the pull request has at that time: a push of another diff asks again. " +
		"Whoever proposed the change, opened this pull request or wrote its commits cannot approve it. The check " + code(GuardName) + " says what is missing.\n\n")
	p.write(denyBlock(r.Fingerprint))
	p.folded("Ids", func(p *page) {
		p.write("- patch " + name(strings.TrimPrefix(r.Fingerprint, "patchset:")) + "\n- proposed as transaction " + name(r.TransactionID) + " on " + name(r.BaseCommit) + "\n\n")
	})
	return p.String()
}
