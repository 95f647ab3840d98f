package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// A Row is what became of one of many transactions (docs/schema/run_all.json).
type Row struct {
	TransactionID string         `json:"transaction_id"`
	PatchID       string         `json:"patch_id,omitempty"` // "" of a record that is damaged
	PullRequest   int            `json:"pull_request,omitempty"`
	Summary       string         `json:"summary"`
	Status        ledger.Status  `json:"status,omitempty"`  // "" of a record that is damaged
	Verdict       approval.State `json:"verdict,omitempty"` // "" where there is none, as of a record that is damaged
	Reason        string         `json:"reason,omitempty"`  // of the verdict
	Outcome       result.Outcome `json:"outcome,omitempty"` // of the apply
	AppliedCommit string         `json:"applied_commit,omitempty"`
	ExitCode      int            `json:"exit_code"` // that `run` of it alone would have had
	Error         string         `json:"error,omitempty"`
}

// Table shows rows to a person, one line each and the sum.
func Table(rows []Row, s Style) string {
	var b strings.Builder
	sum := map[string]int{}
	for _, r := range rows {
		status := cmp.Or(string(r.Status), "damaged")
		sum[status]++
		fmt.Fprintf(&b, "%s  %s  %d  %s\n", r.TransactionID, s.paint(statusColour(r.Status), fmt.Sprintf("%-17s", status)), r.ExitCode, r.about())
	}
	if len(rows) > 1 {
		var counts []string
		for _, status := range slices.Sorted(maps.Keys(sum)) {
			counts = append(counts, fmt.Sprintf("%d %s", sum[status], status))
		}
		fmt.Fprintf(&b, "%s\n", s.paint(bold, fmt.Sprintf("%d transactions: %s", len(rows), strings.Join(counts, ", "))))
	}
	return b.String()
}

// about is the most that a line has room for: what went wrong, else what is
// missing, else what it was about.
func (r Row) about() string {
	switch {
	case r.Error != "":
		return Clean(r.Error)
	case r.Verdict == approval.Pending && r.Reason != "":
		return Clean(r.Reason)
	}
	return Clean(r.Summary)
}
