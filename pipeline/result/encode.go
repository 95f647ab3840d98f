package result

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// Line is the stored form: canonical JSON and one LF (APPLY_SPEC 7.1). The
// error is for a string that is neither UTF-8 nor WTF-8.
func (r Result) Line() ([]byte, error) {
	b, err := canon.Line(r.document())
	if err != nil {
		return nil, fmt.Errorf("encoding ApplyResult: %w", err)
	}
	return b, nil
}

// Parse reads what Line wrote, its LF or none, and refuses anything else, and
// text with lone surrogates, which our own records never hold. It does not
// verify: Verify takes the document.
func Parse(data []byte) (Result, error) {
	var r Result
	if err := canon.Unmarshal(data, &r); err != nil {
		return Result{}, fmt.Errorf("reading ApplyResult: %w", err)
	}
	line, err := r.Line()
	if err != nil {
		return Result{}, err
	}
	if !bytes.Equal(bytes.TrimSuffix(line, []byte("\n")), bytes.TrimSuffix(data, []byte("\n"))) {
		return Result{}, errors.New("reading ApplyResult: not as this program writes it")
	}
	return r, nil
}

// document is r as canon.Parse would give it. It stands in for encoding/json,
// which would replace the lone surrogates that a foreign patch's path may hold.
func (r Result) document() map[string]any {
	m := map[string]any{
		"apply_schema_version": r.SchemaVersion,
		"outcome":              string(r.Outcome),
		"dry_run":              r.DryRun,
		"target_root":          r.TargetRoot,
		"patch_source": map[string]any{
			"proposal_id": r.Source.ProposalID, "proposal_hash": r.Source.ProposalHash,
		},
		"operation_results": list(r.Operations, Operation.document),
		"summary":           r.Summary.document(),
	}
	if len(r.Violations) > 0 {
		m["violations"] = list(r.Violations, violation)
	}
	return withText(m, "error", r.Error)
}

func (o Operation) document() map[string]any {
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

func (s Summary) document() map[string]any {
	return map[string]any{
		"total_operations": float64(s.Total), "succeeded": float64(s.Succeeded),
		"skipped": float64(s.Skipped), "failed": float64(s.Failed),
		"total_bytes_written": float64(s.Bytes),
	}
}

func violation(v rule.Violation) map[string]any {
	return withText(map[string]any{"rule_id": v.RuleID, "message": v.Message}, "path", v.Path)
}

func list[T any](items []T, document func(T) map[string]any) []any {
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
