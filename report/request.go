package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

// A Request is the comment that opens the thread in which people decide on a proposal. It is
// never edited, so it tells nothing that changes, and its text follows from its
// fields alone: a run that was cut off finds its comment again by the bytes.
type Request struct {
	Report    Report // of the transaction as it was proposed; its Verdict is not looked at
	Diff      []byte // canonical bytes, without secrets
	Needs     []policy.Need
	Approvals policy.Approvals
	Commands  []string // that will run before anything is written
	Web       string   // Links.Web
	Policy    PolicyFile
}

// RequestMarker is the last line of a Request's body, by which it is found.
func RequestMarker(transactionID string) string {
	return "<!-- countersign:request:" + unmarked().ReplaceAllString(transactionID, "") + " -->"
}

var unmarked = canon.Regexp(`[^A-Za-z0-9_]`)

// The room of the parts beside the diff: what stands below it, and the characters that
// do not show.
const (
	maxTail   = 20 << 10
	maxPlaces = 4 << 10
	// maxWarning is for the words that the diff is cut.
	maxWarning = 2 << 10
)

// Body is the comment, of at most MaxComment bytes, in the order in which a person
// reads: who wants what and what it waits for, what may be overlooked, as much of the diff
// as fits, and what to type. The rest is folded below.
func (q Request) Body() string {
	marker := RequestMarker(q.Report.TransactionID) + "\n"
	tail, needs := newPage(maxTail), q.unanswered()
	tail.write("**Reply in this thread with one line:**\n\n" + q.Report.short(needs) + q.Report.effect())
	tail.folded("Answer from elsewhere, ids, who may approve", func(p *page) {
		p.write("Elsewhere on the pull request these lines count:\n\n" + q.Report.lines(needs))
		p.write(q.Report.claimsBlock())
		q.writeDetails(p)
	})
	below := tail.String() + marker
	head := newPage(MaxComment - len(below) - maxWarning)
	q.writeHead(head)
	above := head.String()
	diff := q.Report.hunks(q.Diff, MaxComment-len(below)-len(above)-maxWarning)
	if diff.cut() {
		above += warning(fmt.Sprintf("**The diff is cut: %d of its %d lines are shown here.** See all of it before you decide: %s.", diff.shown, diff.total, q.Report.whole("diff")))
	}
	return above + diff.text + below
}

// Is reports whether a body is that of the request: perhaps of another run, which showed the
// record as another commit of the ledger has it.
func (q Request) Is(body string) bool {
	before, _, _ := strings.Cut(q.Report.Record, q.Report.LedgerCommit)
	if at := strings.LastIndex(body, "]("+before); before != "" && at >= 0 {
		after := body[at+len("](")+len(before):]
		if tip, _, _ := strings.Cut(after, "/"); canon.IsGitID(tip) {
			q.Report.MoveLedger(tip)
		}
	}
	return body == q.Body()
}

// writeHead writes the question, and what to know before it is answered.
func (q Request) writeHead(p *page) {
	p.write("### Countersign: does a human approve this change?\n\n" + strings.TrimSpace(q.Report.wants(false)) + "\n" + q.waits())
	if slices.ContainsFunc(q.Needs, func(n policy.Need) bool { return n.Kind == policy.KindSecret }) {
		p.write(caution("**This change adds what looks like a secret.** The diff is shown without it" + masked(q.Diff) + "; what is approved are the real bytes. Approve it only if it is not a secret, or is meant to be there."))
	}
	p.write(q.Report.risks(p.left, q.links()))
	rows := each(escapedIn(q.Diff), func(e escapedPart) string { return e.row(q.Report.Files) })
	places := newPage(min(maxPlaces, p.left))
	places.list(list{"Escapes such as `\\u202e` stand for characters that do not show, or bytes that are not UTF-8, in:\n\n", rows, 30, "more such place", ""})
	p.write(places.String())
}

// waits says how many answers are asked for, and about what.
func (q Request) waits() string {
	answers := 0
	for _, n := range q.Needs {
		answers += max(1, n.Required)
	}
	return string(paragraphs().Fill(nil, "waiting", q.Needs, template.Funcs{"answers": func() int { return answers }}))
}

// fill is a template of Markdown.
func (q Request) fill(of string, data any) string {
	return string(paragraphs().Fill(nil, of, data, nil))
}

// unanswered are the needs as a verdict has them before anybody has answered.
func (q Request) unanswered() []view.Requirement {
	var out []view.Requirement
	for _, n := range q.Needs {
		out = append(out, view.Requirement{Kind: n.Kind, Fingerprint: n.Prefix + q.Report.Fingerprint, Required: max(1, n.Required), Signed: n.Signed})
	}
	return view.Missing(out)
}

func (q Request) links() Links { return Links{Web: q.Web, Policy: q.Policy} }

func (q Request) writeDetails(p *page) {
	r := q.Report
	links := q.links()
	p.write(r.paragraph("request", links, nil) + q.fill("conditions", q.Approvals))
	p.list(list{"Needed, under " + links.policy() + ":\n\n", each(q.Needs, func(n policy.Need) string { return q.fill("need", n) }), maxNames, "need", ""})
	commands := each(q.Commands, func(c string) string { return "- " + name(c) + "\n" })
	p.list(list{"Commands that run first, in a sandbox:\n\n", commands, maxNames, "command", ""})
	p.write("The same bytes in a clone:\n\n" + r.seeDiff())
}

// maxNames is how many paths, people or commands are named in one place.
const maxNames = 20

// age is a duration, "" for none, in the largest unit that it is a whole number of.
func age(d time.Duration) string {
	if d <= 0 {
		return ""
	}
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

var plainRef = canon.Regexp(`^refs/[A-Za-z0-9][A-Za-z0-9/_.-]*$`)

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

// whole is where all of it is: a link, or without an address the command that shows it.
func (r Report) whole(command string) string {
	const words = "the record"
	if to := link(words, r.Record); to != words {
		return to
	}
	return name("countersign " + command + " " + r.TransactionID)
}

// OpenedBody is the text of a pull request that was opened for a transaction: who wants
// what, what may be overlooked, which bytes these are, and how to answer.
func OpenedBody(r Report) string {
	p := newPage(MaxComment)
	p.write("### A change that waits for approval\n\n" + r.wants(false))
	p.write(r.risks(p.left/2, Links{}))
	p.write(r.paragraph("review", Links{}, nil))
	p.folded("Ids", func(p *page) { p.write(r.paragraph("ids", Links{}, nil)) })
	return p.String()
}
