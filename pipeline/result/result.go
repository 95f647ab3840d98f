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
		Operations: append([]Operation{}, ops...), Summary: summarize(ops),
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

func summarize(ops []Operation) Summary {
	s := Summary{Total: len(ops)}
	for _, o := range ops {
		switch o.Status {
		case StatusSuccess:
			s.Succeeded++
		case StatusSkipped:
			s.Skipped++
		case StatusError:
			s.Failed++
		}
		s.Bytes += o.BytesWritten
	}
	return s
}

// Refuse is the result of a patch that was not attempted: message says why,
// and vs, of which it sorts a copy, in detail.
func Refuse(root string, dryRun bool, message string, vs []rule.Violation) Result {
	r := New(root, Source{}, dryRun, nil)
	r.Outcome, r.Error, r.Violations = Refused, message, slices.Clone(vs)
	rule.Sort(r.Violations)
	return r
}
