package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/policy"
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
	of := r.Repository
	if of == "" {
		of = "the forge"
	}
	verdict := strings.Join(counts, ", ")
	if r.Bad() > 0 {
		verdict = s.Red(verdict)
	}
	fmt.Fprintf(&b, "%s: %s\n", Clean(of), verdict)
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

// Rules of SARIF that the forge's answers break.
const (
	OnlineRule        = "forge-contradicts-record"
	OnlineUnknownRule = "forge-does-not-tell"
)

// AddOnline adds what the forge contradicts, as errors, and what it does not tell, as
// warnings.
func (l *SARIFLog) AddOnline(r online.Result) {
	run := &l.Runs[0]
	add := func(rule, level, text string, f online.Finding) {
		if !slices.ContainsFunc(run.Tool.Driver.Rules, func(r sarifRule) bool { return r.ID == rule }) {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{rule, sarifText{text + ": docs/online.md"}})
		}
		subject := f.What + " " + f.About
		run.Results = append(run.Results, sarifResult{
			RuleID: rule, Level: level, Locations: []sarifLocation{sarifPlace(explain.Lines{Path: policy.Path}, f.TransactionID)},
			Message:      sarifText{Clean(fmt.Sprintf("%s (%s) is %s: %s %s", subject, f.TransactionID, f.Verdict, f.Now, f.Reason))},
			Fingerprints: map[string]string{"online/v1": f.TransactionID + " " + subject + " " + rule},
		})
	}
	for _, f := range r.Findings {
		switch f.Verdict {
		case online.Gone, online.Changed:
			add(OnlineRule, "error", "the forge tells something else than the record", f)
		case online.Unknown:
			add(OnlineUnknownRule, "warning", "the forge does not tell what was recorded of it", f)
		}
	}
}
