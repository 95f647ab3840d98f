package effect

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// ResultVersion is the apply_schema_version that NewResult and RefuseResult write
// (APPLY_SPEC 3.1).
const ResultVersion = "1.0.0"

// ExitCode is the status the process ends with (APPLY_SPEC 9.1): 0 for
// Success, 2 for Refused, 1 for anything else.
func ExitCode(o ledger.Outcome) int {
	switch o {
	case ledger.OutcomeSuccess:
		return 0
	case ledger.OutcomeRefused:
		return 2
	}
	return 1
}

// NewResult is the result of operations that were attempted, in any order. It sorts
// a copy of them by path (UTF-16 code units), counts, and draws the outcome:
// Success if none failed, Partial if some did and some succeeded, else Failed.
func NewResult(root string, src ledger.PatchSource, dryRun bool, ops []ledger.Operation) ledger.ApplyResult {
	r := ledger.ApplyResult{
		SchemaVersion: ResultVersion, DryRun: dryRun, TargetRoot: root, Source: src,
		Operations: append([]ledger.Operation{}, ops...), Summary: ledger.ApplySummary{Total: len(ops)},
	}
	for _, o := range ops {
		switch o.Status {
		case ledger.StatusSuccess:
			r.Summary.Succeeded++
		case ledger.StatusSkipped:
			r.Summary.Skipped++
		case ledger.StatusError:
			r.Summary.Failed++
		}
		r.Summary.Bytes += o.BytesWritten
	}
	slices.SortStableFunc(r.Operations, func(a, b ledger.Operation) int {
		return canon.Compare(a.Path, b.Path)
	})
	switch s := r.Summary; {
	case s.Failed == 0:
		r.Outcome = ledger.OutcomeSuccess
		return r
	case s.Succeeded > 0:
		r.Outcome = ledger.OutcomePartial
	default:
		r.Outcome = ledger.OutcomeFailed
	}
	r.Error = fmt.Sprintf("%d operations failed", r.Summary.Failed)
	return r
}

// RefuseResult is the result of a patch that was not attempted: message says why,
// and vs, of which it sorts a copy, in detail.
func RefuseResult(root string, dryRun bool, message string, vs []canon.Violation) ledger.ApplyResult {
	r := NewResult(root, ledger.PatchSource{}, dryRun, nil)
	r.Outcome, r.Error, r.Violations = ledger.OutcomeRefused, message, slices.Clone(vs)
	canon.SortViolations(r.Violations)
	return r
}

// ResultLine is the stored form: canonical JSON and one LF (APPLY_SPEC 7.1). The
// error is for a string that is neither UTF-8 nor WTF-8.
func ResultLine(r ledger.ApplyResult) ([]byte, error) {
	b, err := canon.Line(resultDocument(r))
	if err != nil {
		return nil, fmt.Errorf("encoding ApplyResult: %w", err)
	}
	return b, nil
}

// resultDocument is r as canon.Parse would give it. It stands in for encoding/json,
// which would replace the lone surrogates that a foreign patch's path may hold.
func resultDocument(r ledger.ApplyResult) map[string]any {
	m := map[string]any{
		"apply_schema_version": r.SchemaVersion,
		"outcome":              string(r.Outcome),
		"dry_run":              r.DryRun,
		"target_root":          r.TargetRoot,
		"patch_source": map[string]any{
			"proposal_id": r.Source.ProposalID, "proposal_hash": r.Source.ProposalHash,
		},
		"operation_results": documents(r.Operations, operationDocument),
		"summary":           summaryDocument(r.Summary),
	}
	if len(r.Violations) > 0 {
		m["violations"] = documents(r.Violations, violationDocument)
	}
	return withText(m, "error", r.Error)
}

func operationDocument(o ledger.Operation) map[string]any {
	m := map[string]any{
		"op": o.Op, "path": o.Path, "status": string(o.Status),
		"before_hash": nil, "after_hash": nil, "bytes_written": float64(o.BytesWritten),
	}
	if o.BeforeHash != nil {
		m["before_hash"] = *o.BeforeHash
	}
	if o.AfterHash != nil {
		m["after_hash"] = *o.AfterHash
	}
	return withText(m, "error", o.Error)
}

func summaryDocument(s ledger.ApplySummary) map[string]any {
	return map[string]any{
		"total_operations": float64(s.Total), "succeeded": float64(s.Succeeded),
		"skipped": float64(s.Skipped), "failed": float64(s.Failed),
		"total_bytes_written": float64(s.Bytes),
	}
}

func violationDocument(v canon.Violation) map[string]any {
	return withText(map[string]any{"rule_id": v.RuleID, "message": v.Message}, "path", v.Path)
}

func documents[T any](items []T, document func(T) map[string]any) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = document(item)
	}
	return out
}

// withText sets an optional field: left out when empty.
func withText(m map[string]any, key, text string) map[string]any {
	if text != "" {
		m[key] = text
	}
	return m
}
