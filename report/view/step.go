package view

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// ClaimsHead is what stands above claims.
const ClaimsHead = "A commit of this change says, in the proposer's words, which nobody has verified:"

// Claims are what a commit says in its proposer's words below its summary: lines of their text, and
// the trailers that they declare. They are foreign text.
func Claims(message string, declared []string) (lines []string) {
	if message != "" {
		lines = strings.Split(message, "\n")
	}
	if len(lines) > 0 && len(declared) > 0 {
		lines = append(lines, "")
	}
	return append(lines, declared...)
}

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
