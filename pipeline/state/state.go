// Package state has the words for where a transaction stands: one table for lists, screens,
// pages, comments, check runs, evidence and JSON. The words of the record (ledger.Status) are
// for programs. It is pure.
package state

import (
	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A State is where a transaction stands, as people read it.
type State string

// The states. docs/README.md explains each.
const (
	Begun       State = "being recorded"
	Waits       State = "waits for approval"
	Approved    State = "approved, not applied"
	Mergeable   State = "approved, not merged"
	CheckFailed State = "check failed"
	ApplyFailed State = "apply failed"
	Unchecked   State = "applied, not checked yet"
	Applied     State = "applied"
	Merged      State = "merged"
	Denied      State = "denied"
	Superseded  State = "superseded"
	Closed      State = "closed"
	Damaged     State = "does not verify"
	Unknown     State = "cannot be told"
)

// All are the states in the order of a life.
var All = []State{Begun, Waits, Approved, Mergeable, CheckFailed, ApplyFailed, Unchecked, Applied, Merged, Denied, Superseded, Closed, Damaged, Unknown}

// Of is the state of a transaction with a status and a verdict, "" for none yet. gateOnly says
// that it is a pull request's own diff. failed is ledger.Log.LastFailed: of an applied one, that its
// last validate found something; of one that failed, that its last apply was begun.
func Of(status ledger.Status, verdict approval.State, gateOnly, failed bool) State {
	applied, approved := Applied, Approved
	if gateOnly {
		applied, approved = Merged, Mergeable
	}
	switch status {
	case ledger.Completed:
		return applied
	case ledger.Applied:
		if failed {
			return CheckFailed
		}
		return Unchecked
	case ledger.Denied:
		return Denied
	case ledger.Superseded:
		return Superseded
	case ledger.Interrupted:
		return Closed
	case ledger.Created, ledger.InProgress:
		return Begun
	case ledger.Proposed, ledger.Awaiting, ledger.Failed:
	default:
		return Unknown
	}
	switch {
	case verdict == approval.Denied:
		return Denied
	case status == ledger.Failed && failed:
		return ApplyFailed
	case status == ledger.Failed:
		return CheckFailed
	case verdict == approval.Approved:
		return approved
	}
	return Waits
}

// Logged is Of a transaction as its log has it.
func Logged(log *ledger.Log, verdict approval.State) State {
	tx := log.Transaction()
	return Of(tx.Status, verdict, tx.GateOnly(), log.LastFailed())
}

// Unsettled says in a sentence, whose subject is "it", why a transaction was not carried out to
// its end.
func Unsettled(log *ledger.Log) string {
	switch at := Logged(log, ""); {
	case log.Transaction().Status == ledger.Applied && at == CheckFailed:
		return "it was applied, and the check failed"
	case at != Waits:
		return "it is " + string(at)
	}
	return "it was not applied"
}

// A Tone is what a state means at a glance.
type Tone int

// The tones.
const (
	Open Tone = iota // somebody has something to do
	Good
	Bad
	Over
)

// Tone is that of a state.
func (s State) Tone() Tone {
	switch s {
	case Applied, Merged, Unchecked:
		return Good
	case Denied, CheckFailed, ApplyFailed, Damaged, Unknown:
		return Bad
	case Superseded, Closed:
		return Over
	}
	return Open
}
