package workpaper

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Text is the report for a terminal: what is not as it should be, then the other changes.
func Text(r evidence.Report) string {
	var b strings.Builder
	changes, exceptions := 0, 0
	for _, repo := range r.Repositories {
		changes, exceptions = changes+repo.Changes, exceptions+repo.Exceptions
	}
	fmt.Fprintf(&b, "%s to %s (UTC): %s in %s, %s\n", r.From, r.To, ledger.Plural(changes, "change", "changes"), ledger.Plural(len(r.Repositories), "repository", "repositories"),
		ledger.Plural(exceptions, "row with an exception", "rows with exceptions"))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", line(n))
	}
	for _, repo := range r.Repositories {
		if repo.Read {
			fmt.Fprintf(&b, "%s, %s at %.12s, ledger at %.12s\n", line(repo.Name), line(repo.Branch), line(repo.Commit), line(repo.LedgerCommit))
		}
	}
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "%s %s %s", line(row.Repository), line(short(row.Commit)), line(row.Subject))
		for _, rec := range row.Records {
			fmt.Fprintf(&b, ": %s; proposed by %s; approved by %s; independent: %s", line(rec.TransactionID), line(people(rec.Proposers)), line(approvals(rec.Decisions)), line(string(rec.Independent)))
			if len(rec.Checks) > 0 {
				fmt.Fprintf(&b, "; %s", line(checks(rec.Checks)))
			}
		}
		if row.ExplainedBy != "" {
			fmt.Fprintf(&b, ": %s", line(explained(row)))
		}
		b.WriteByte('\n')
		for _, e := range row.Exceptions {
			fmt.Fprintf(&b, "  %s: %s\n", line(string(e.Code)), line(e.Text))
		}
	}
	return b.String()
}

func line(text string) string { return ledger.OneLine(text, 1000) }

// short is the beginning of a commit's id, or what stands for a row without one.
func short(commit string) string {
	if commit == "" {
		return "(all of it)"
	}
	return commit[:min(len(commit), 12)]
}
