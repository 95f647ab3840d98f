package pipeline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A LimitError is an input over the Policy's limits.
type LimitError struct {
	What      string
	Have, Max int64
}

func (e *LimitError) Error() string {
	if e.What == "bytes" {
		return fmt.Sprintf("the patch or the content that it adds is larger than the limit of %s", size(e.Max))
	}
	return fmt.Sprintf("the patch has %d %s, the limit is %d", e.Have, e.What, e.Max)
}

func (e *LimitError) Hint() string {
	return "split the change, or raise limits." + e.What + " in the Policy"
}

// size is a number of bytes for people.
func size(n int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := int64(1) << (30 - 10*i); n >= one {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(one)), ".0") + " " + unit
		}
	}
	return fmt.Sprint(n, " bytes")
}

// A PendingError says that approvals are missing, on a pull request or, where
// that is 0, here.
type PendingError struct {
	ID          string
	Verdict     approval.Verdict
	PullRequest int
}

func (e *PendingError) Error() string {
	return fmt.Sprintf("%s %s (%s)", e.ID, plain.Waits, plain.Reason(e.Verdict.Reason))
}

// A DeniedError says that a human denied the patch. ID is the transaction, or
// "" where none was made; In is the one that has the denial, where that is known.
type DeniedError struct {
	ID      string
	PatchID string
	Reason  string
	In      string
}

func (e *DeniedError) Error() string {
	if e.ID == "" {
		return fmt.Sprintf("patch %s was %s", e.PatchID, e.Reason)
	}
	return fmt.Sprintf("%s was %s", e.ID, e.Reason)
}

func (*DeniedError) Hint() string {
	return "a denial is final for these bytes; propose a different patch"
}

// A SupersededError says that the base of an approved change is no more.
type SupersededError struct {
	ID          string
	Files       []string
	PullRequest int // 0 for none
}

func (e *SupersededError) Error() string {
	if len(e.Files) == 0 {
		return e.ID + " is superseded"
	}
	return fmt.Sprintf("%s is superseded: %s changed meanwhile", e.ID, escape.QuoteList(e.Files))
}

func (e *SupersededError) Hint() string {
	if e.PullRequest > 0 {
		return "make the patch again on the current commit, and review it"
	}
	return "countersign review --again " + e.ID
}

// ClosedError is an error that says that a transaction takes no more events.
func ClosedError(id string, status ledger.Status) error {
	text := id + " is closed"
	if at := plain.StateOf(status, "", false, false); at != plain.Closed {
		text += ": " + string(at)
	}
	return fault.Refuse(text, "countersign show "+id)
}

// Undecided is an error that says why a decision does not fit the transaction.
func Undecided(why string) error { return fault.Refuse(why, "") }

// Errors that say always the same.
var (
	ErrNobody     = fault.Refuse("Git does not know who decides: it has no e-mail address here (user.email)", "git config user.email YOU@EXAMPLE.ORG")
	ErrNoWorktree = fault.Refuse("the repository is bare: it has no working tree", "countersign run TX --to branch")
	// ErrGateOnly is wrapped where there is nothing to apply: the change is a pull request's own diff.
	ErrGateOnly = errors.New("it is merged, not applied")
	// ErrUnapplied is wrapped where an apply was begun and did not succeed.
	ErrUnapplied = errors.New("not applied")
	// ErrUnasked is wrapped where a commit of the merge queue does to its base what nobody was asked about.
	ErrUnasked = errors.New("nobody was asked about it")
	// ErrChanged is wrapped by a decision on something else than what was shown: the Policy, or the
	// approvals that it asks for, are others by now. Nothing was recorded.
	ErrChanged       = errors.New("changed")
	ErrPolicyChanged = fault.Refuse("the Policy changed while the checks ran", "run it again: the new Policy applies")
)

// gateOnly says that a pull request's own diff is not applied.
func gateOnly(tx ledger.Transaction) error {
	text := fmt.Sprintf("%s is the diff of pull request %d itself: %v", tx.TransactionID, tx.PullRequest(), ErrGateOnly)
	return &fault.Error{Kind: fault.Refused, Message: text, Try: "merge the pull request once its check has passed", Cause: ErrGateOnly}
}

// Unapplied says why an apply did not succeed.
func Unapplied(r ledger.ApplyResult) error {
	return &fault.Error{Kind: fault.Failed, Message: "apply: " + r.Error, Try: "countersign run TX", Cause: ErrUnapplied}
}

// Changed says that a transaction asks for something else than was shown.
func Changed(id string) error {
	text := "what " + id + " asks for has changed since it was shown: nothing was recorded"
	return &fault.Error{Kind: fault.Refused, Message: text, Try: "countersign gate " + id, Cause: ErrChanged}
}

// A ChecksError says which required checks the built tree failed.
type ChecksError struct {
	ID         string
	Violations []canon.Violation
}

func (e *ChecksError) Error() string {
	return fmt.Sprintf("%s fails %s: %s", e.ID, ledger.Plural(len(e.Violations), "required check", "required checks"), e.Violations[0].Message)
}
