package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// Markdown is the report for a job summary or a check run, of at most
// MaxCheckText bytes: verdict and failures first.
func (r Report) Markdown() string {
	p := newPage(MaxCheckText)
	r.write(p, "###")
	return p.String()
}

// write puts the report on a page, below a heading of that level.
func (r Report) write(p *page, level string) {
	p.write(r.glassCaution())
	p.write(level + " countersign: " + r.headline() + "\n\n")
	r.writeFailures(p)
	p.write(r.asks())
	p.write(r.facts())
	r.writeDecisions(p)
	r.writeFiles(p)
}

// glassBroken tells whether somebody's break-glass stands in for the approvals
// that the Policy asks for.
func (r Report) glassBroken() bool {
	return r.Verdict != nil && r.Verdict.BreakGlass
}

// glassWarning is what each report of a broken glass begins with.
const glassWarning = "BREAK-GLASS: this change does not have the approvals that the Policy asks for"

func (r Report) glassCaution() string {
	if !r.glassBroken() {
		return ""
	}
	return caution("**" + glassWarning + ".** " + words(r.Verdict.Reason))
}

// caution and warning are boxes that stand out (GitHub's alerts).
func caution(text string) string { return "> [!CAUTION]\n> " + text + "\n\n" }
func warning(text string) string { return "> [!WARNING]\n> " + text + "\n\n" }

func (r Report) headline() string {
	if r.Validation != nil && !r.Validation.OK {
		return fmt.Sprintf("%s, %s", r.Outcome(), plural(len(r.Validation.Violations), "violation"))
	}
	if r.ApplyResult == nil && r.Verdict != nil {
		return string(r.Verdict.State) + " (" + words(r.Verdict.Reason) + ")"
	}
	return r.Outcome()
}

// facts are what does not change with the verdict.
func (r Report) facts() string {
	rows := []string{"transaction | " + name(r.TransactionID) + " (" + prose(string(r.Status)) + ")", "fingerprint | " + name(r.Fingerprint)}
	if r.PullRequest > 0 {
		rows = append(rows, fmt.Sprintf("pull request | %d", r.PullRequest))
	}
	if r.GateOnly {
		rows = append(rows, "kind | the pull request's own diff; nothing is applied")
	}
	rows = append(rows, "files | "+r.filesLine())
	if r.Summary != "" {
		rows = append(rows, "summary | "+words(r.Summary))
	}
	if r.Proposer.Login != "" {
		rows = append(rows, "proposer | "+name(r.Proposer.Login))
	}
	if r.AppliedCommit != "" {
		rows = append(rows, "commit | "+name(r.AppliedCommit))
	}
	rows = append(rows, "ledger | "+name(r.LedgerRef)+" "+name(r.LedgerCommit))
	return "| | |\n|---|---|\n| " + strings.Join(rows, " |\n| ") + " |\n\n"
}

// writeFailures lists what is wrong: broken rules, then operations that failed.
func (r Report) writeFailures(p *page) {
	if r.ApplyResult != nil && r.ApplyResult.Error != "" {
		p.write("**Error:** " + words(r.ApplyResult.Error) + "\n\n")
	}
	var rows []string
	for _, v := range r.violations() {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |\n", name(v.RuleID), name(v.Path), words(v.Message)))
	}
	p.list(list{"| rule | where | what |\n|---|---|---|\n", rows, 100, "violation", r.seeAll()})
	rows = nil
	for _, o := range r.Operations() {
		if rank(o) == 0 {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |\n", prose(o.Op), name(o.Path), words(o.Error)))
		}
	}
	p.list(list{"| failed | file | why |\n|---|---|---|\n", rows, 100, "failure", r.seeAll()})
}

func (r Report) seeAll() string {
	return ", " + code("countersign show --json "+r.TransactionID) + " has all"
}

// writeFiles lists the files, with what became of each where it is known.
func (r Report) writeFiles(p *page) {
	var rows []string
	if r.ApplyResult == nil {
		for _, f := range r.Files {
			rows = append(rows, f.row())
		}
		p.list(list{"| | file | lines |\n|---|---|---|\n", rows, 500, "file", r.seeAll()})
		return
	}
	for _, o := range r.Operations() {
		if rank(o) != 0 {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |\n", prose(o.Op), name(o.Path), prose(string(o.Status))))
		}
	}
	p.list(list{"| | file | result |\n|---|---|---|\n", rows, 500, "file", r.seeAll()})
}

func (f File) row() string {
	where := name(f.Path)
	if f.From != "" {
		where = name(f.From) + " → " + where
	}
	return fmt.Sprintf("| %s | %s | +%d −%d |\n", prose(f.Kind), where, f.Added, f.Deleted)
}

// writeDecisions lists who said what, and whether it counted.
func (r Report) writeDecisions(p *page) {
	if r.Verdict == nil {
		return
	}
	var rows []string
	for _, d := range r.Verdict.Decisions {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |\n", said(d), name(d.Author.Login), countedText(d)))
	}
	p.list(list{"| decision | by | counted |\n|---|---|---|\n", rows, 200, "decision", r.seeAll()})
	p.write(r.nativeHint())
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
	return prose(string(d.Decision)) + about
}

func countedText(d approval.Judged) string {
	if d.Counted {
		return "yes"
	}
	return "no: " + words(d.Reason)
}

// nativeHint tells those who pressed the green button what counts instead; the
// line to paste is among the asks.
func (r Report) nativeHint() string {
	native := func(d approval.Judged) bool {
		return !d.Counted && d.Source == approval.KindReview && d.Decision != ledger.Deny
	}
	if !r.waits() || r.GateOnly || !slices.ContainsFunc(r.Verdict.Decisions, native) {
		return ""
	}
	return "A review is about the pull request as it stands, not about this change: paste the line above to decide on it.\n\n"
}
