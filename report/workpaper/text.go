package workpaper

import (
	"embed"
	"fmt"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/template"
)

//go:embed report.txt
var reportFile embed.FS

// lines are templates in which each value stands in one line.
var lines = sync.OnceValue(func() *template.Set {
	return template.Parse(reportFile, func(out []byte, value any) []byte { return append(out, ledger.OneLine(fmt.Sprint(value), 1000)...) }, template.Funcs{
		"plural": ledger.Plural, "short": short, "begin": func(id string) string { return id[:min(len(id), 12)] },
		"people": people, "approvals": approvals, "checks": checks, "explained": explained,
	})
})

// Text is the report for a terminal: what is not as it should be, then the other changes.
func Text(r evidence.Report) string {
	data := struct {
		evidence.Report
		Changes, Exceptions int
	}{Report: r}
	for _, repo := range r.Repositories {
		data.Changes, data.Exceptions = data.Changes+repo.Changes, data.Exceptions+repo.Exceptions
	}
	return string(lines().Fill(nil, "report", data, nil))
}

// short is the beginning of a commit's id, or what stands for a row without one.
func short(commit string) string {
	if commit == "" {
		return "(all of it)"
	}
	return commit[:min(len(commit), 12)]
}
