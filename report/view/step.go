package view

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// StepSaid is the text that the item is about, and of a call the files that it changes; "" for
// a plan.
func StepSaid(i ledger.TraceStep) string {
	for _, text := range []*string{i.Command, i.Tool, i.Summary, i.Content} {
		if text != nil {
			return strings.TrimSpace(*text + " " + strings.Join(i.Metadata.Paths, ", "))
		}
	}
	return ""
}

// Unfinished is what became of a call that was not completed, in words, "" for any other
// item.
func Unfinished(i ledger.TraceStep) string {
	return map[string]string{ledger.ItemInProgress: "not ended", ledger.ItemFailed: "failed", ledger.ItemCancelled: "cancelled"}[i.Status]
}
