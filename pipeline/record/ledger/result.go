package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// An Outcome is what became of a patch as a whole (APPLY_SPEC 3.3).
type Outcome string

// The outcomes: nothing failed, some operations failed, none succeeded, and
// nothing was attempted.
const (
	OutcomeSuccess Outcome = "SUCCESS"
	OutcomePartial Outcome = "PARTIAL"
	OutcomeFailed  Outcome = "FAILED"
	OutcomeRefused Outcome = "REFUSED"
)

// An OperationStatus is what became of one operation (APPLY_SPEC 3.4).
type OperationStatus string

// The statuses. A skipped operation was fine, but not carried out because
// another one failed.
const (
	StatusSuccess OperationStatus = "success"
	StatusSkipped OperationStatus = "skipped"
	StatusError   OperationStatus = "error"
)

// An ApplyResult says what became of each operation of a patch (APPLY_SPEC 1.0.0, 3.2). Package effect makes it. It is stored as
// one line of canonical JSON (RFC 8785) and an LF:
//
//	{"apply_schema_version":"1.0.0","dry_run":false,"operation_results":[],"outcome":"SUCCESS","patch_source":{"proposal_hash":"","proposal_id":""},"summary":{"failed":0,"skipped":0,"succeeded":0,"total_bytes_written":0,"total_operations":0},"target_root":"."}
//
// Each of operation_results has after_hash and before_hash (sha256: and 64 hex
// digits, or null), bytes_written, op, path, status, and error where status is
// "error". FAILED, PARTIAL and REFUSED have an error, REFUSED its violations.
type ApplyResult struct {
	SchemaVersion string            `json:"apply_schema_version"`
	Outcome       Outcome           `json:"outcome"`
	DryRun        bool              `json:"dry_run"`
	TargetRoot    string            `json:"target_root"` // never absolute (AS12)
	Source        PatchSource       `json:"patch_source"`
	Operations    []Operation       `json:"operation_results"` // sorted by path
	Summary       ApplySummary      `json:"summary"`
	Violations    []canon.Violation `json:"violations,omitempty"` // sorted by rule, path
	Error         string            `json:"error,omitempty"`
}

// A PatchSource names what the patch was made from (APPLY_SPEC 3.2); both are empty
// where the patch was refused.
type PatchSource struct {
	ProposalID   string `json:"proposal_id"`
	ProposalHash string `json:"proposal_hash"`
}

// An Operation is the outcome of one operation (APPLY_SPEC 3.4). Hashes have
// the form of canon.Sum; nil is JSON's null: no file.
type Operation struct {
	Op           string          `json:"op"` // create, modify or delete
	Path         string          `json:"path"`
	Status       OperationStatus `json:"status"`
	BeforeHash   *string         `json:"before_hash"`
	AfterHash    *string         `json:"after_hash"`
	BytesWritten int64           `json:"bytes_written"`
	Error        string          `json:"error,omitempty"`
}

// An ApplySummary counts operations, and the bytes they wrote (APPLY_SPEC 3.5).
type ApplySummary struct {
	Total     int   `json:"total_operations"`
	Succeeded int   `json:"succeeded"`
	Skipped   int   `json:"skipped"`
	Failed    int   `json:"failed"`
	Bytes     int64 `json:"total_bytes_written"`
}

// ParseResult reads the stored form, its LF or none, and refuses what is not as this
// program writes it. Whether it says what a record may hold, Check tells.
func ParseResult(data []byte) (ApplyResult, error) {
	var r ApplyResult
	err := canon.Unmarshal(data, &r)
	if err == nil && r.Operations == nil {
		err = errors.New("operation_results is null")
	}
	if err != nil {
		return ApplyResult{}, fmt.Errorf("reading ApplyResult: %w", err)
	}
	return r, nil
}

// Check holds the result of an apply that succeeded to docs/spec/transaction.md,
// E-34, as far as it speaks of this document alone.
func (r ApplyResult) Check() error {
	sum := ApplySummary{Total: len(r.Operations)}
	for _, o := range r.Operations {
		switch o.Status {
		case StatusSuccess:
			sum.Succeeded++
		case StatusSkipped:
			sum.Skipped++
		case StatusError:
			sum.Failed++
		default:
			return fmt.Errorf("invalid status: %q", o.Status)
		}
		sum.Bytes += o.BytesWritten
		switch {
		case o.Op != "create" && o.Op != "modify" && o.Op != "delete":
			return fmt.Errorf("invalid op: %q", o.Op)
		case !isHash(o.BeforeHash) || !isHash(o.AfterHash):
			return fmt.Errorf("invalid hash format of %q", o.Path)
		case canon.IsAbsolute(o.Path):
			return fmt.Errorf("absolute path in operation: %q", o.Path)
		case o.Status == StatusError && o.Error == "":
			return errors.New("operation status is error but no error message provided")
		}
	}
	byPath := func(a, b Operation) int { return canon.Compare(a.Path, b.Path) }
	byRule := func(a, b canon.Violation) int {
		return cmp.Or(canon.Compare(a.RuleID, b.RuleID), canon.Compare(a.Path, b.Path))
	}
	switch {
	case r.SchemaVersion == "":
		return errors.New("apply_schema_version cannot be empty")
	case r.Outcome != OutcomeSuccess:
		return fmt.Errorf("outcome is %q", r.Outcome)
	case canon.IsAbsolute(r.TargetRoot):
		return fmt.Errorf("absolute path in target_root: %q", r.TargetRoot)
	case !slices.IsSortedFunc(r.Operations, byPath) || !slices.IsSortedFunc(r.Violations, byRule):
		return errors.New("operation_results or violations are not sorted")
	case r.Summary != sum:
		return errors.New("summary does not count the operations")
	}
	return nil
}

func isHash(h *string) bool { return h == nil || canon.IsSum(*h) }
