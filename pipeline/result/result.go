// Package result builds, writes, reads and verifies the ApplyResult: what
// became of each operation of a patch (APPLY_SPEC 1.0.0).
//
// It is stored as one line of canonical JSON (RFC 8785) and an LF:
//
//	{"apply_schema_version":"1.0.0","dry_run":false,"operation_results":[],"outcome":"SUCCESS","patch_source":{"proposal_hash":"","proposal_id":""},"summary":{"failed":0,"skipped":0,"succeeded":0,"total_bytes_written":0,"total_operations":0},"target_root":"."}
//
// Each of operation_results has after_hash and before_hash (sha256: and 64 hex
// digits, or null), bytes_written, op, path, status, and error where status is
// "error". FAILED, PARTIAL and REFUSED have an error, REFUSED its violations.
package result

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// SchemaVersion is the apply_schema_version that New and Refuse write
// (APPLY_SPEC 3.1).
const SchemaVersion = "1.0.0"

// An Outcome is what became of a patch as a whole (APPLY_SPEC 3.3).
type Outcome string

// The outcomes: nothing failed, some operations failed, none succeeded, and
// nothing was attempted.
const (
	Success Outcome = "SUCCESS"
	Partial Outcome = "PARTIAL"
	Failed  Outcome = "FAILED"
	Refused Outcome = "REFUSED"
)

// ExitCode is the status the process ends with (APPLY_SPEC 9.1): 0 for
// Success, 2 for Refused, 1 for anything else.
func (o Outcome) ExitCode() int {
	switch o {
	case Success:
		return 0
	case Refused:
		return 2
	}
	return 1
}

// A Status is what became of one operation (APPLY_SPEC 3.4).
type Status string

// The statuses. A skipped operation was fine, but not carried out because
// another one failed.
const (
	StatusSuccess Status = "success"
	StatusSkipped Status = "skipped"
	StatusError   Status = "error"
)

// A Result is the ApplyResult of APPLY_SPEC 3.2. New and Refuse build it.
type Result struct {
	SchemaVersion string           `json:"apply_schema_version"`
	Outcome       Outcome          `json:"outcome"`
	DryRun        bool             `json:"dry_run"`
	TargetRoot    string           `json:"target_root"` // never absolute (AS12)
	Source        Source           `json:"patch_source"`
	Operations    []Operation      `json:"operation_results"` // sorted by path
	Summary       Summary          `json:"summary"`
	Violations    []rule.Violation `json:"violations,omitempty"` // sorted by rule, path
	Error         string           `json:"error,omitempty"`
}

// A Source names what the patch was made from (APPLY_SPEC 3.2); both are empty
// where the patch was refused.
type Source struct {
	ProposalID   string `json:"proposal_id"`
	ProposalHash string `json:"proposal_hash"`
}

// An Operation is the outcome of one operation (APPLY_SPEC 3.4). Hashes have
// the form of canon.Sum; nil is JSON's null: no file.
type Operation struct {
	Op           string  `json:"op"` // create, modify or delete
	Path         string  `json:"path"`
	Status       Status  `json:"status"`
	BeforeHash   *string `json:"before_hash"`
	AfterHash    *string `json:"after_hash"`
	BytesWritten int64   `json:"bytes_written"`
	Error        string  `json:"error,omitempty"`
}

// A Summary counts operations, and the bytes they wrote (APPLY_SPEC 3.5).
type Summary struct {
	Total     int   `json:"total_operations"`
	Succeeded int   `json:"succeeded"`
	Skipped   int   `json:"skipped"`
	Failed    int   `json:"failed"`
	Bytes     int64 `json:"total_bytes_written"`
}

// New is the result of operations that were attempted, in any order. It sorts
// a copy of them by path (UTF-16 code units), counts, and draws the outcome:
// Success if none failed, Partial if some did and some succeeded, else Failed.
func New(root string, src Source, dryRun bool, ops []Operation) Result {
	r := Result{
		SchemaVersion: SchemaVersion, DryRun: dryRun, TargetRoot: root, Source: src,
		Operations: append([]Operation{}, ops...), Summary: Summary{Total: len(ops)},
	}
	for _, o := range ops {
		switch o.Status {
		case StatusSuccess:
			r.Summary.Succeeded++
		case StatusSkipped:
			r.Summary.Skipped++
		case StatusError:
			r.Summary.Failed++
		}
		r.Summary.Bytes += o.BytesWritten
	}
	slices.SortStableFunc(r.Operations, func(a, b Operation) int {
		return canon.Compare(a.Path, b.Path)
	})
	switch s := r.Summary; {
	case s.Failed == 0:
		r.Outcome = Success
		return r
	case s.Succeeded > 0:
		r.Outcome = Partial
	default:
		r.Outcome = Failed
	}
	r.Error = fmt.Sprintf("%d operations failed", r.Summary.Failed)
	return r
}

// Refuse is the result of a patch that was not attempted: message says why,
// and vs, of which it sorts a copy, in detail.
func Refuse(root string, dryRun bool, message string, vs []rule.Violation) Result {
	r := New(root, Source{}, dryRun, nil)
	r.Outcome, r.Error, r.Violations = Refused, message, slices.Clone(vs)
	rule.Sort(r.Violations)
	return r
}

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
