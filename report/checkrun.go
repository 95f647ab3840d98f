package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// maxText is how many characters GitHub takes in a check run's summary and
// text (REST API, "Create a check run").
const maxText = 65535

// A CheckRun is what a forge's check shows. Conclusion is one of GitHub's:
// success, neutral or failure.
type CheckRun struct {
	Name       string
	Title      string
	Summary    string
	Text       string
	Conclusion string
}

// CheckRun renders the report as a check run of its own name. A proposal that
// nobody answered, or that a human denied, is neutral: it must not paint a pull
// request red.
func (r Report) CheckRun() CheckRun {
	c := CheckRun{
		Name: "countersign/" + r.PatchID[:12], Title: r.title(),
		Summary: clip(r.Markdown()), Conclusion: r.conclusion(),
	}
	if r.ApplyResult != nil {
		if line, err := canon.Line(r.ApplyResult); err == nil {
			c.Text = fenced("json", line)
		}
	}
	return c
}

func (r Report) title() string {
	if r.ApplyResult != nil {
		return string(r.ApplyResult.Outcome) + ", " + r.filesLine()
	}
	if r.Verdict != nil {
		return string(r.Verdict.State) + ", " + r.filesLine()
	}
	return string(r.Status)
}

func (r Report) conclusion() string {
	switch {
	case r.Validation != nil && !r.Validation.OK, r.Status == ledger.Failed:
		return "failure"
	case r.ApplyResult != nil && r.ApplyResult.Outcome != result.Success:
		return "failure"
	case r.Status == ledger.Applied || r.Status == ledger.Completed:
		return "success"
	}
	return "neutral"
}

// fenced puts a document in a code block, or says that it is too long for one.
func fenced(lang string, doc []byte) string {
	text := "```" + lang + "\n" + string(doc) + "```\n"
	if utf8.RuneCountInString(text) > maxText {
		return "The document is too long to be shown here; the ledger has it.\n"
	}
	return text
}

// clip cuts details at the end; what matters most stands first.
func clip(text string) string {
	const note = "\n\n… cut here; the ledger has the whole.\n"
	if utf8.RuneCountInString(text) <= maxText {
		return text
	}
	runes := []rune(text)
	return string(runes[:maxText-len([]rune(note))]) + note
}

// Markdown is the report for a job summary, a comment or a check run.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### countersign: %s\n\n", r.headline())
	fmt.Fprintf(&b, "| | |\n|---|---|\n| transaction | `%s` (%s) |\n| fingerprint | `%s` |\n| files | %s |\n", r.TransactionID, r.Status, r.Fingerprint, r.filesLine())
	if r.Summary != "" {
		fmt.Fprintf(&b, "| summary | %s |\n", escape(r.Summary))
	}
	fmt.Fprintf(&b, "| ledger | `%s` `%s` |\n\n", r.LedgerRef, r.LedgerCommit)
	r.violationsTable(&b)
	r.operationsTable(&b)
	r.decisionsTable(&b)
	return b.String()
}

func (r Report) headline() string {
	if r.ApplyResult == nil && r.Verdict != nil {
		return string(r.Verdict.State) + " (" + escape(r.Verdict.Reason) + ")"
	}
	if r.Validation != nil && !r.Validation.OK {
		return fmt.Sprintf("%s, %d violations", r.Outcome(), len(r.Validation.Violations))
	}
	return r.Outcome()
}

func (r Report) violationsTable(b *strings.Builder) {
	if r.Validation == nil || r.Validation.OK {
		return
	}
	b.WriteString("| rule | where | what |\n|---|---|---|\n")
	for _, v := range r.Validation.Violations {
		fmt.Fprintf(b, "| %s | %s | %s |\n", escape(v.RuleID), escape(v.Path), escape(v.Message))
	}
	b.WriteByte('\n')
}

func (r Report) operationsTable(b *strings.Builder) {
	b.WriteString("| | file | result |\n|---|---|---|\n")
	if r.ApplyResult == nil {
		for _, f := range r.Files {
			fmt.Fprintf(b, "| %s | %s | +%d −%d |\n", f.Kind, escape(f.name()), f.Added, f.Deleted)
		}
	}
	for _, o := range r.Operations() {
		what := string(o.Status)
		if o.Error != "" {
			what += ": " + escape(o.Error)
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", o.Op, escape(o.Path), what)
	}
	b.WriteByte('\n')
}

func (r Report) decisionsTable(b *strings.Builder) {
	if r.Verdict == nil || len(r.Verdict.Decisions) == 0 {
		return
	}
	b.WriteString("| decision | by | counted |\n|---|---|---|\n")
	for _, d := range r.Verdict.Decisions {
		fmt.Fprintf(b, "| %s | %s | %s |\n", d.Decision, escape(d.Author.Login), countedText(d))
	}
}

func countedText(d approval.Judged) string {
	if d.Counted {
		return "yes"
	}
	return "no: " + escape(d.Reason)
}

// escape makes foreign text inert in Markdown: every ASCII punctuation
// character is backslash-escaped (CommonMark 2.4), "@" and "#" are broken up so
// that nobody is mentioned, "<" written as an entity.
func escape(text string) string {
	var b strings.Builder
	for _, r := range Clean(text) {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '@' || r == '#':
			b.WriteString(string(r) + "\u200b")
		case strings.ContainsRune("\\`*_{}[]()!|>~&", r):
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
