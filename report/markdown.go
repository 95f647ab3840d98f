package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/rule"
	"github.com/countersign-dev/countersign/pipeline/state"
)

// Markdown is the report for a job summary or a check run, of at most
// MaxCheckText bytes: verdict and failures first.
func (r Report) Markdown() string {
	p := newPage(MaxCheckText)
	r.write(p, Links{})
	return p.String()
}

// write puts the report on a page as a person reads it: how it stands, what went
// wrong, who wants what and why, what may be overlooked, what there is to answer;
// of a change that is over, what became of it. Ids and hashes are folded below.
func (r Report) write(p *page, to Links) {
	if r.glassBroken() {
		p.write(caution("**" + glassWarning + ".** " + words(plain(r.Verdict))))
	}
	of := "" // both may be in one comment
	if r.GateOnly {
		of = "the pull request itself: "
	}
	p.write("### countersign: " + of + r.headline() + "\n\n")
	if r.isStory() {
		p.write(r.story(to) + r.record())
		p.folded("Risks, ids, decisions and files", func(p *page) {
			p.write(r.risks(p.left, to))
			p.write(r.drift(to) + r.facts(to))
			r.writeDecisions(p)
			r.writeFiles(p)
		})
		return
	}
	first := r.record() + r.wants(false) + r.drift(to)
	first += r.risks(p.left-len(first), to) + r.claimsBlock()
	failures := newPage(p.left - len(first))
	r.writeFailures(failures)
	p.write(failures.String())
	p.write(first)
	diff := fold(r.Diff, min(p.left-len(r.asks(to, false)), maxDiff))
	shown := diff.shown > 0 && !diff.cut()
	if shown {
		p.write(diff.String())
	}
	p.write(r.asks(to, shown))
	r.writeDecisions(p)
	r.writeFiles(p)
	p.folded("Ids, hashes and the ledger", func(p *page) { p.write(r.facts(to)) })
}

// wants says who wants what, and why in their own words. An account of a forge that hands in
// more than a pull request's own diff does so for an agent, of which the record has no name but
// the one that a patch may say.
func (r Report) wants(over bool) string {
	verb, says := "proposes to change", "and says"
	switch agent := !r.GateOnly && !strings.HasPrefix(r.Proposer.ID, "local:"); {
	case agent && over:
		verb, says = "handed in a change to", "described as"
	case agent:
		verb, says = "hands in a change to", "described as"
	case over:
		verb, says = "proposed to change", "and said"
	}
	text := name(r.Proposer.Login) + " " + verb + " " + r.filesLine()
	if r.GateOnly {
		text += " with this pull request"
	}
	if r.Author != nil {
		text += ", by " + name(r.Author.Name) + " as the patch says, which nobody has verified"
	}
	if r.Summary != "" {
		return text + ", " + says + `: "` + words(unquoted(r.Summary)) + "\"\n\n"
	}
	return text + ".\n\n"
}

// record leads to the transaction's page in the ledger, where a server has it.
func (r Report) record() string {
	const words = "The record"
	to := link(words, r.Record)
	if to == words {
		return ""
	}
	if to = "**" + to + "**"; r.LedgerWeb != "" {
		to += " (in another repository, for those who may read that)"
	}
	return to + " shows the exact bytes, who decided what, and how to check both.\n\n"
}

// linked is the transaction's id, which leads to its record where a server has that.
func (r Report) linked() string {
	if ledger.CheckID(r.TransactionID) != nil {
		return name(r.TransactionID)
	}
	return link(code(r.TransactionID), r.Record)
}

// isStory reports whether a change is over, and nothing went wrong.
func (r Report) isStory() bool {
	failed := r.ApplyResult != nil && r.ApplyResult.Outcome != result.Success || r.Validation != nil && !r.Validation.OK
	return over(r) == 1 && r.Status != ledger.Failed && !failed
}

// story is what became of a change, in three lines: who wanted what, who decided,
// and what was done.
func (r Report) story(to Links) string {
	decided := "ended: " + words(r.Ended)
	if r.Ended == "" && r.Verdict != nil {
		decided = string(r.Verdict.State) + " (" + words(plain(r.Verdict)) + ")"
		var by []string
		for _, d := range r.Verdict.Decisions {
			if d.Counted && !slices.Contains(by, d.Author.Login) {
				by = append(by, d.Author.Login)
			}
		}
		if len(by) > 0 && r.Verdict.State == approval.Approved {
			decided += ", by " + codes(by, maxNames)
		}
	}
	if to.Thread != "" {
		decided += ", in " + link("the request", to.Thread)
	}
	done := "not applied"
	switch {
	case r.AppliedCommit != "":
		done = "applied as commit " + to.commit(r.AppliedCommit) + ", and read back"
	case r.ApplyResult != nil:
		done = "applied, and read back"
	case r.GateOnly && r.Status == ledger.Completed:
		done = "merged"
	}
	wanted := strings.TrimSuffix(strings.TrimSpace(r.wants(true)), ".")
	return "1. " + wanted + "\n2. " + decided + "\n3. " + done + "\n\n"
}

// glassBroken reports whether somebody's break-glass stands in for the approvals
// that the Policy asks for.
func (r Report) glassBroken() bool {
	return r.Verdict != nil && r.Verdict.BreakGlass
}

// glassWarning is what each report of a broken glass begins with.
const glassWarning = "BREAK-GLASS: this change does not have the approvals that the Policy asks for"

// caution and warning are boxes that stand out (GitHub's alerts).
func caution(text string) string { return "> [!CAUTION]\n> " + text + "\n\n" }
func warning(text string) string { return "> [!WARNING]\n> " + text + "\n\n" }

func (r Report) headline() string {
	switch {
	case r.Validation != nil && !r.Validation.OK:
		return fmt.Sprintf("%s, %s", state.CheckFailed, Counted(len(r.Validation.Violations), "violation"))
	case r.ApplyResult == nil && r.Ended == "" && r.Verdict != nil && r.Stands() == state.Denied:
		return words(plain(r.Verdict)) // denied by whom, and why
	case r.ApplyResult == nil && r.Ended == "" && r.Verdict != nil:
		return string(r.Stands()) + " (" + words(plain(r.Verdict)) + ")"
	}
	return r.standsIn(words)
}

// facts are which bytes these are, and where they stand.
func (r Report) facts(to Links) string {
	rows := []string{
		"transaction | " + r.linked() + " (" + string(r.Stands()) + ")", "fingerprint | " + name(r.Fingerprint),
		"base commit | " + to.commit(r.BaseCommit),
	}
	if r.PullRequest > 0 {
		rows = append(rows, fmt.Sprintf("pull request | %d", r.PullRequest))
	}
	if r.GateOnly {
		rows = append(rows, "kind | the pull request's own diff; nothing is applied")
	}
	if len(r.Supersedes) > 0 {
		rows = append(rows, "supersedes | "+codes(r.Supersedes, maxNames))
	}
	if r.Author != nil {
		rows = append(rows, "author | "+words(r.author()))
	}
	for _, one := range r.further() {
		rows = append(rows, "proposed too | "+words(from(one)))
	}
	if r.Confidence != nil {
		rows = append(rows, fmt.Sprintf("confidence | %d of 100, says the proposer", *r.Confidence))
	}
	if r.AppliedCommit != "" {
		rows = append(rows, "commit | "+to.commit(r.AppliedCommit))
	}
	rows = append(rows, "ledger | "+name(r.LedgerRef)+" "+r.ledgerLinks(to).commit(r.LedgerCommit))
	return "| | |\n|---|---|\n| " + strings.Join(rows, " |\n| ") + " |\n\n"
}

// writeFailures lists what is wrong: broken rules, then operations that failed.
func (r Report) writeFailures(p *page) {
	if r.ApplyResult != nil && r.ApplyResult.Error != "" {
		p.write("**Error:** " + words(r.ApplyResult.Error) + "\n\n")
	}
	p.list(list{"| rule | where | what |\n|---|---|---|\n", each(r.violations(), func(v rule.Violation) string {
		return fmt.Sprintf("| %s | %s | %s |\n", name(v.RuleID), name(v.Path), words(v.Message))
	}), 100, "violation", r.seeAll()})
	bad, _ := r.operations()
	p.list(list{"| failed | file | why |\n|---|---|---|\n", each(bad, func(o result.Operation) string {
		return fmt.Sprintf("| %s | %s | %s |\n", words(o.Op), name(o.Path), words(o.Error))
	}), 100, "failure", r.seeAll()})
}

func (r Report) seeAll() string {
	return ", " + code("countersign show --json "+r.TransactionID) + " has all"
}

// writeFiles lists the files, with what became of each where it is known.
func (r Report) writeFiles(p *page) {
	if r.ApplyResult == nil {
		p.list(r.files(500))
		return
	}
	_, rest := r.operations()
	p.list(list{"| | file | result |\n|---|---|---|\n", each(rest, func(o result.Operation) string {
		return fmt.Sprintf("| %s | %s | %s |\n", words(o.Op), name(o.Path), words(string(o.Status)))
	}), 500, "file", r.seeAll()})
}

// files is a table of the changed files.
func (r Report) files(most int) list {
	return list{"| | file | lines |\n|---|---|---|\n", each(r.Files, r.fileRow), most, "file", r.seeAll()}
}

// operations are those that failed, and the others.
func (r Report) operations() (bad, rest []result.Operation) {
	ops := r.Operations()
	first := slices.IndexFunc(ops, func(o result.Operation) bool { return rank(o) != 0 })
	if first < 0 {
		return ops, nil
	}
	return ops[:first], ops[first:]
}

func (r Report) fileRow(f File) string {
	where := name(f.Path)
	if f.From != "" {
		where = name(f.From) + " → " + where
	}
	added, deleted, note := r.lineCounts(f)
	counts := strings.TrimSpace(added + " " + strings.Replace(deleted, "-", "−", 1))
	return fmt.Sprintf("| %s | %s | %s%s |\n", words(f.Kind), where+f.renamedFrom(name), counts, note)
}

// writeDecisions lists who said what, and whether it counted.
func (r Report) writeDecisions(p *page) {
	if r.Verdict == nil {
		return
	}
	p.list(list{"| decision | by | counted |\n|---|---|---|\n", each(r.Verdict.Decisions, func(d approval.Judged) string {
		counted := "yes"
		if !d.Counted {
			counted = "no: " + words(d.Why())
		}
		return fmt.Sprintf("| %s | %s | %s |\n", said(d), name(d.Author.Login), counted)
	}), 200, "decision", r.seeAll()})
	// Those who pressed the green button are told what counts instead; the line to
	// paste is among the asks.
	native := func(d approval.Judged) bool {
		return !d.Counted && d.Source == approval.KindReview && d.Decision != ledger.Deny
	}
	if r.waits() && !r.GateOnly && slices.ContainsFunc(r.Verdict.Decisions, native) {
		p.write("A review is about the pull request as it stands, not about this change. To decide about this change, paste the line above.\n\n")
	}
}

// said names a decision; what only looks like one has no name.
func said(d approval.Judged) string {
	switch {
	case d.Decision == "" && d.Source == approval.KindReview:
		return "review"
	case d.Decision == "":
		return "unclear"
	}
	about := ""
	switch prefix, _, _ := strings.Cut(d.Fingerprint, "patchset:"); prefix {
	case "secret:":
		about = " (secret)"
	case "protected:":
		about = " (protected paths)"
	}
	return words(string(d.Decision)) + about
}

// waits reports whether people on a pull request are asked now.
func (r Report) waits() bool {
	return r.Ended == "" && r.PullRequest > 0 && r.Verdict != nil && r.Verdict.State == approval.Pending
}

// missing lists the fingerprints that still lack an approval, each once.
func (r Report) missing() []approval.Need {
	var out []approval.Need
	for _, n := range r.Verdict.Needs {
		known := func(m approval.Need) bool { return m.Fingerprint == n.Fingerprint }
		if n.Approved < n.Required && !slices.ContainsFunc(out, known) {
			out = append(out, n)
		}
	}
	return out
}

// maxDiff bounds the diff that is shown where there is no request.
const maxDiff = 16 << 10

// asks says how to answer while approvals are missing: in the thread of the
// request, which binds a short answer to these bytes, or with the lines to copy.
// shown tells that the diff stands above.
func (r Report) asks(to Links, shown bool) string {
	if !r.waits() {
		return ""
	}
	if slices.ContainsFunc(r.missing(), func(n approval.Need) bool { return n.Kind == policy.KindFileChange && n.Signed }) {
		return r.approving() + r.signBlock() + denyBlock(r.Fingerprint)
	}
	head := "**To answer,** comment on the pull request with one line, exactly as it stands."
	switch command := name("countersign diff " + r.TransactionID); {
	case to.Thread != "":
		head = "**To answer,** reply " + code("/approve") + ", or " + code("/deny") + " and your reason, in " + link("the request", to.Thread) +
			", which shows the diff. Or comment here with the full line:"
	case r.GateOnly:
		head += " The diff is the pull request's own; " + command + " shows its exact bytes."
	case !shown:
		head += " The diff is not shown here: " + command + " shows it."
	}
	return r.approving() + head + "\n\n" + r.approveBlocks() + denyBlock(r.Fingerprint) + r.greenHint()
}

// approving says what an approval does.
func (r Report) approving() string {
	if r.GateOnly {
		return "**If you approve,** the check `countersign` passes for exactly these bytes, the pull request's own diff, once everybody who is needed has approved.\n\n"
	}
	return "**If you approve,** Countersign writes exactly these bytes and nothing else, once everybody who is needed has approved.\n\n"
}

// greenHint says where the green button counts.
func (r Report) greenHint() string {
	if !r.GateOnly {
		return ""
	}
	return "A review that approves the pull request as it is now also approves the change itself.\n\n"
}

// approveBlocks has a line to copy for each approval that is missing; those that must
// be signed are made by a command.
func (r Report) approveBlocks() string {
	var b strings.Builder
	sign := false
	for _, n := range r.missing() {
		if sign = sign || n.Signed; !n.Signed {
			b.WriteString("To approve " + cmp.Or(kindWords[n.Kind].sentence, prose(n.Kind)) + reasons(r.list(), n.Kind) + ":\n\n" + lineBlock("/approve "+n.Fingerprint) + "\n")
		}
	}
	if sign {
		b.WriteString(r.signBlock())
	}
	return b.String()
}

// signBlock says how to give an approval that must be signed.
func (r Report) signBlock() string {
	return "**Only an approval that is signed with the approver's own SSH key counts.** This command shows you the change and its risks, asks you, signs your answer and posts it here:\n\n" +
		lineBlock(fmt.Sprintf("countersign sign --pr %d --post", r.PullRequest)) + "\n"
}

// reasons are what an approval of a kind is about, the first of them, in brackets.
func reasons(risks risk.List, kind string) string {
	const most = 3
	all, beside := Reasons(risks, kind)
	var out []string
	for _, one := range all[:min(len(all), most)] {
		out = append(out, riskItem(one, Links{}))
	}
	if more := len(all) - len(out) + beside; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	if len(out) == 0 {
		return ""
	}
	return " – " + strings.Join(out, "; ")
}

func denyBlock(fingerprint string) string {
	return "To deny it for good, add your reason to this line:\n\n" + lineBlock("/deny "+fingerprint) + "\n"
}

// kindWords says what an approval of a kind is about, in a sentence and in a list.
var kindWords = map[string]struct{ sentence, list string }{
	policy.KindFileChange: {"this change", "the change"},
	policy.KindSecret:     {"that it adds **what looks like a secret**", "what looks like a **secret**"},
	policy.KindProtected:  {"that it changes **protected paths**", "**protected paths**"},
}

// Links are the addresses that a comment can lead to. Without one a name stands
// as it is.
type Links struct {
	Web    string // of the repository on the forge, such as https://github.com/acme/app
	Thread string // of the request in which people answer
	Policy PolicyFile
}

// A PolicyFile is where people can read the Policy: the commit that has it, "" for
// none, and the lines at which its parts begin (policy.Lines).
type PolicyFile struct {
	Commit string
	Lines  map[string]int
}

// WebOf is Links.Web of a repository that is cloned from an address.
func WebOf(cloneURL string) string { return strings.TrimSuffix(cloneURL, ".git") }

// commit is a commit by its first letters.
func (l Links) commit(id string) string {
	if l.Web == "" || !commitID().MatchString(id) {
		return name(id)
	}
	return link(code(id[:12]), l.Web+"/commit/"+id)
}

// ledgerLinks are the links of the repository that has the ledger.
func (r Report) ledgerLinks(to Links) Links {
	to.Web = cmp.Or(r.LedgerWeb, to.Web)
	return to
}

// policy is the Policy's file.
func (l Links) policy() string {
	if l.Web == "" || !commitID().MatchString(l.Policy.Commit) {
		return "the Policy"
	}
	return link("the Policy", l.Web+"/blob/"+l.Policy.Commit+"/"+policy.Path)
}

// rule is a part of the Policy by its name, such as protected[0].
func (l Links) rule(part string) string {
	line := l.Policy.Lines[part]
	if l.Web == "" || line == 0 || !commitID().MatchString(l.Policy.Commit) {
		return prose(part)
	}
	return link(prose(part), fmt.Sprintf("%s/blob/%s/%s#L%d", l.Web, l.Policy.Commit, policy.Path, line))
}

// compare leads to what differs between two commits; without an address it is the
// command that shows it.
func (l Links) compare(from, to string) string {
	if l.Web == "" || !commitID().MatchString(from) || !commitID().MatchString(to) {
		return name("git diff " + from + " " + to)
	}
	return link("compare", l.Web+"/compare/"+from+".."+to)
}
