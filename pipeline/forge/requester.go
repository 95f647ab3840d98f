package forge

import "github.com/countersign-dev/countersign/pipeline/record/ledger"

// StartedBy are those who started a run of a workflow by an event, and who ran it again: what it hands over they asked
// for. Nobody asks for what a schedule starts, whose run names the last who changed the workflow's file.
func StartedBy(event string, actor, triggering ledger.Actor) (out []ledger.Requester) {
	if actor.ID != "" && event != "schedule" {
		out = append(out, ledger.Requester{Actor: actor, Source: ledger.AskedByRunActor})
	}
	if triggering.ID != "" && triggering.ID != actor.ID {
		out = append(out, ledger.Requester{Actor: triggering, Source: ledger.AskedByRunTrigger})
	}
	return out
}
