// Package workpaper shows a report of evidence to people: as text, as a table for spreadsheets
// (CSV), and as pages. It is pure. All that is foreign is text in each of them: no escape of a
// terminal, no formula, no markup.
package workpaper

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

// Columns are the header of the CSV.
var Columns = []string{
	"exceptions", "repository", "branch", "commit", "link", "subject", "came after", "came by", "claimed time", "explained by", "transaction", "pull request",
	"proposed by", "approved by", "independent", "why", "checks", "policy", "needed", "applied", "completed", "tickets", "deployed", "checks of the forge now", "deployments of the forge now", "commits", "what is not as it should be",
}

// CSV is the table as RFC 4180 has it: CR LF, every cell in quotation marks, one header. No cell,
// and no part of one that a program might take for a cell, begins as a formula: an apostrophe
// stands before it (see cell).
func CSV(r evidence.Report) string {
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(cell(c))
		}
		b.WriteString("\r\n")
	}
	line(Columns)
	for _, row := range r.Rows {
		line(cells(row))
	}
	return b.String()
}

func cells(row evidence.Row) []string {
	each := func(of func(evidence.Record) string) string { return view.Joined(row.Records, " / ", of) }
	return []string{
		view.Joined(row.Exceptions, " ", func(e evidence.Exception) string { return string(e.Code) }), row.Repository, row.Branch, row.Commit, row.URL, row.Subject, row.CameAfter, row.CameBy, row.ClaimedAt, explained(row),
		each(func(r evidence.Record) string { return r.TransactionID }), each(func(r evidence.Record) string { return strings.TrimPrefix(strconv.Itoa(r.PullRequest), "0") }), each(func(r evidence.Record) string { return people(r.Proposers) }),
		each(func(r evidence.Record) string { return approvals(r.Decisions) }), string(row.Independent()), each(func(r evidence.Record) string { return r.Why }),
		each(func(r evidence.Record) string { return checks(r.Checks) }), each(func(r evidence.Record) string { return r.Policy.SHA256 }),
		each(func(r evidence.Record) string { return needs(r.Needs) }), each(func(r evidence.Record) string { return r.AppliedAt }),
		each(func(r evidence.Record) string { return r.CompletedAt }), view.Joined(row.Tickets, "; ", ticket), view.Joined(row.Deployments, "; ", deployment), toldChecks(row.Told), toldDeployments(row.Told), strings.Join(row.Commits, " "), view.Joined(row.Exceptions, " / ", func(e evidence.Exception) string { return string(e.Code) + ": " + e.Text }),
	}
}

// separators are what a program may split a line at, whatever stands in quotation marks.
const separators = ",;|\t\"'"

// cell is a text in quotation marks. What does not show is a space. An apostrophe stands where a
// formula would begin: before = + - and @ in all their widths, at the beginning and behind any
// separator, with or without spaces between.
func cell(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	begins := true
	for _, r := range text {
		if !ledger.Visible(r) {
			r = ' '
		}
		switch {
		case begins && strings.ContainsRune("=+-@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b\u2212", r):
			b.WriteByte('\'')
			begins = false
		case strings.ContainsRune(separators, r):
			begins = true
		case r != ' ' && r != '\u00a0' && r != '\u3000':
			begins = false
		}
		if r == '"' {
			b.WriteByte('"')
		}
		b.WriteRune(r)
	}
	b.WriteByte('"')
	return b.String()
}

// explained is what accounts for a change, in words.
func explained(row evidence.Row) string {
	switch {
	case row.Commit == "":
		return ""
	case row.ExplainedBy == "":
		return "nothing"
	case row.Signer != "":
		return row.ExplainedBy + " " + row.Signer
	}
	text := strings.ReplaceAll(row.ExplainedBy, "_", " ")
	if how := explain.Strength(row.Strength).Words(); how != "" {
		text += ", approved " + how
	}
	return text
}

// item is one of a list in a cell: in quotation marks if it has what stands between or behind the
// items of such lists, so that it reads as no more than one.
func item(text, marks string) string {
	if strings.ContainsAny(text, marks) {
		return strconv.Quote(text)
	}
	return text
}

// who is a person with what does not change about them.
func who(a ledger.Actor) string {
	name, id := item(ledger.OneLine(a.Login, 100), ",;()/\""), item(ledger.OneLine(a.ID, 100), ",;()/\"")
	switch {
	case name == "" || name == id:
		return id
	case id == "":
		return name
	}
	return name + " (" + id + ")"
}

var proposedAs = map[string]string{"proposed_again": ", proposed it too", "proposed_elsewhere": ", proposed it in another transaction", "author": ", wrote commits of it"}

func people(all []evidence.Person) string {
	return view.Joined(all, "; ", func(p evidence.Person) string {
		kind := ""
		if p.Kind != "user" {
			kind = ", " + ledger.OneLine(p.Kind, 20)
		}
		return who(p.Actor) + kind + proposedAs[p.As]
	})
}

// names are people by their names alone, each once.
func names[T any](all []T, of func(T) ledger.Actor) string {
	return cmp.Or(strings.Join(view.Distinct(all, func(one T) string {
		a := of(one)
		return item(ledger.OneLine(cmp.Or(a.Login, a.ID), 100), ",;()/→\"")
	}), ", "), "nobody")
}

// approvals are the decisions that count, by whom, and how that is known.
func approvals(all []evidence.Decision) string {
	counted := slices.DeleteFunc(slices.Clone(all), func(d evidence.Decision) bool { return !d.Counted })
	return view.Joined(counted, "; ", decision)
}

func decision(d evidence.Decision) string {
	verb := ""
	if d.Decision != ledger.Approve {
		verb = ", " + string(d.Decision)
	}
	if d.Requester {
		verb += ", " + view.AskedFor
	}
	return fmt.Sprintf("%s%s, %s, %s, %s", who(d.Author), verb, view.What(d.Kind), strings.Join(d.VerifiedBy, " and "), ledger.OneLine(d.DecidedAt, 40))
}

func checks(all []evidence.Check) string {
	var out []string
	for _, c := range all {
		text := item(ledger.OneLine(c.Name, 200), ":;\"") + ": " + map[bool]string{true: "passed", false: "failed"}[c.Passed]
		if !c.Required {
			text += " (not required)"
		}
		out = append(out, text+" "+c.When+" it was applied")
	}
	return strings.Join(slices.Compact(out), "; ")
}

func needs(all []evidence.Need) string {
	return view.Joined(all, "; ", func(n evidence.Need) string {
		return fmt.Sprintf("%s: %d of %d", view.What(n.Kind), n.Approved, n.Required)
	})
}

//go:embed report.txt
var reportFile embed.FS

// lines are templates in which each value stands in one line.
var lines = sync.OnceValue(func() *template.Set {
	return template.Parse(reportFile, func(out []byte, value any) []byte { return append(out, ledger.OneLine(fmt.Sprint(value), 1000)...) }, template.Funcs{
		"plural": ledger.Plural, "short": short, "begin": func(id string) string { return id[:min(len(id), 12)] },
		"people": people, "approvals": approvals, "checks": checks, "explained": explained,
	})
})

// Text is the report for a terminal: what is not as it should be, then the other changes. red makes what is overdue stand out.
func Text(r evidence.Report, red func(string) string) string {
	data := struct {
		evidence.Report
		Changes, Exceptions int
	}{Report: r}
	for _, repo := range r.Repositories {
		data.Changes, data.Exceptions = data.Changes+repo.Changes, data.Exceptions+repo.Exceptions
	}
	return string(lines().Fill(nil, "report", data, template.Funcs{"code": template.Raw(func(code evidence.Code) string {
		if code == evidence.Overdue {
			return red(string(code))
		}
		return string(code)
	})}))
}

// short is the beginning of a commit's id, or what stands for a row without one.
func short(commit string) string {
	if commit == "" {
		return "(all of it)"
	}
	return commit[:min(len(commit), 12)]
}
