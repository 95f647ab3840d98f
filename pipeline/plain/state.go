package plain

// A State is where a transaction stands, as people read it: one table for lists, screens, pages,
// comments, check runs, evidence and JSON. The words of the record (ledger.Status) are for programs.
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

// States are the states in the order of a life.
var States = []State{Begun, Waits, Approved, Mergeable, CheckFailed, ApplyFailed, Unchecked, Applied, Merged, Denied, Superseded, Closed, Damaged, Unknown}

// StateOf is the state of a transaction with a ledger.Status and an approval.State, "" for none yet. gateOnly says
// that it is a pull request's own diff. failed is ledger.Log.LastFailed: of an applied one, that its
// last validate found something; of one that failed, that its last apply was begun.
func StateOf[S, V ~string](status S, verdict V, gateOnly, failed bool) State {
	applied, approved := Applied, Approved
	if gateOnly {
		applied, approved = Merged, Mergeable
	}
	switch status {
	case "completed":
		return applied
	case "applied":
		if failed {
			return CheckFailed
		}
		return Unchecked
	case "denied":
		return Denied
	case "superseded":
		return Superseded
	case "interrupted":
		return Closed
	case "created", "in_progress":
		return Begun
	case "proposed", "awaiting_approval", "failed":
	default:
		return Unknown
	}
	switch {
	case verdict == "denied":
		return Denied
	case status == "failed" && failed:
		return ApplyFailed
	case status == "failed":
		return CheckFailed
	case verdict == "approved":
		return approved
	}
	return Waits
}

// A StateLog is a ledger.Log.
type StateLog interface {
	Stands() (status string, gateOnly, failed bool)
}

// StateOfLog is Of a transaction as its log has it.
func StateOfLog[V ~string](log StateLog, verdict V) State {
	status, gateOnly, failed := log.Stands()
	return StateOf(status, verdict, gateOnly, failed)
}

// Unsettled says in a sentence, whose subject is "it", why a transaction was not carried out to its end.
func Unsettled(log StateLog) string {
	status, _, _ := log.Stands()
	switch at := StateOfLog(log, ""); {
	case status == "applied" && at == CheckFailed:
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
	ToneOpen Tone = iota // somebody has something to do
	ToneGood
	ToneBad
	Over
)

// Tone is that of a state.
func (s State) Tone() Tone {
	switch s {
	case Applied, Merged, Unchecked:
		return ToneGood
	case Denied, CheckFailed, ApplyFailed, Damaged, Unknown:
		return ToneBad
	case Superseded, Closed:
		return Over
	}
	return ToneOpen
}
