package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/online"
)

// CheckName is the name of the check run of a transaction with a patch.
func CheckName(patchID string) string { return transactionCheck + patchID[:min(12, len(patchID))] }

// Online is what the forge tells of the record now: what contradicts it first, and
// everything else that is not the same.
func Online(r online.Result, s Style) string {
	var b strings.Builder
	var counts []string
	for _, v := range online.Verdicts {
		if n := r.Counts[v]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, v))
		}
	}
	verdict := strings.Join(counts, ", ")
	if r.Bad() > 0 {
		verdict = s.Red(verdict)
	}
	fmt.Fprintf(&b, "%s: %s\n", Clean(cmp.Or(r.Repository, "the forge")), verdict)
	for _, f := range r.Findings {
		if f.Verdict == online.Same {
			break
		}
		name := fmt.Sprintf("%-7s", f.Verdict)
		if f.Verdict == online.Gone || f.Verdict == online.Changed {
			name = s.Red(name)
		}
		fmt.Fprintf(&b, "  %s %s", name, Clean(f.What+" "+f.About))
		if f.TransactionID != "" {
			fmt.Fprintf(&b, " (%s)", Clean(f.TransactionID))
		}
		for _, part := range []string{f.Now, f.Reason} {
			if part != "" {
				b.WriteString(": " + Clean(part))
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "  asked %s of %d, %d answered before", Counted(r.Asked, "question"), r.Questions, r.Reused)
	if r.Remaining > 0 {
		fmt.Fprintf(&b, ", %d remaining", r.Remaining)
	}
	if r.Stopped != "" {
		b.WriteString(": " + Clean(r.Stopped))
	}
	b.WriteString("\n")
	return b.String()
}
