// Package ledger has the values of the ledger: the Event, the Log that chains
// events, the Transaction that a Log folds to, and the check of one transaction
// directory. It knows nothing of Git: a directory is any fs.FS.
//
// A transaction directory holds
//
//	transaction.json            the fold of the events
//	events.jsonl                one canonical JSON event a line
//	patches/<patch_id>.diff     the canonical bytes that were approved
//	patches/<patch_id>.diff.age where the patch is kept encrypted as well
//	artifacts/<sha256>.json     evidence
//	apply_result.json           the ApplyResult, once the change is applied
//
// and an event reads
//
//	{"payload":{…},"prev":"sha256:…","seq":2,"timestamp":"2026-01-05T00:00:00Z","type":"tx/status"}
//
// where prev is the SHA-256 of the line before with its LF, null for the first.
package ledger

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// A Type names an event (seed: review_apply_resume_v0, checkpoint 10).
type Type string

// The event types.
const (
	TypeMeta             Type = "tx/meta"
	TypeStatus           Type = "tx/status"
	TypeTurnStart        Type = "turn/start"
	TypeTurnItem         Type = "turn/item"
	TypeArtifact         Type = "artifact/stored"
	TypeRequest          Type = "approval/request"
	TypeDecision         Type = "approval/decision"
	TypeApplyStart       Type = "apply/start"
	TypeApplyComplete    Type = "apply/complete"
	TypeValidateStart    Type = "validate/start"
	TypeValidateComplete Type = "validate/complete"
	TypeClose            Type = "tx/close"
)

// An Event is one line of events.jsonl. Seq counts from 1.
type Event struct {
	Seq       int             `json:"seq"`
	Prev      *string         `json:"prev"`
	Timestamp string          `json:"timestamp"`
	Type      Type            `json:"type"`
	Payload   json.RawMessage `json:"payload"`
}

// A Payload is what one type of event carries.
type Payload interface{ Type() Type }

// TimeFormat is how an event's timestamp is written, always in UTC.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// FormatTime writes a moment as the ledger does.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }

// newPayload returns an empty payload for a type, nil for an unknown one.
func newPayload(t Type) Payload {
	switch t {
	case TypeMeta:
		return &Meta{}
	case TypeStatus:
		return &StatusChange{}
	case TypeTurnStart:
		return &TurnStart{}
	case TypeTurnItem:
		return &TurnItem{}
	case TypeArtifact:
		return &ArtifactStored{}
	case TypeRequest:
		return &ApprovalRequest{}
	case TypeDecision:
		return &ApprovalDecision{}
	case TypeApplyStart:
		return &ApplyStart{}
	case TypeApplyComplete:
		return &ApplyComplete{}
	case TypeValidateStart:
		return &ValidateStart{}
	case TypeValidateComplete:
		return &ValidateComplete{}
	case TypeClose:
		return &Close{}
	}
	return nil
}

// Decode returns the event's payload as its type's struct pointer. A payload
// that the type would not be written as is an error: unknown or missing keys,
// another letter case.
func (e Event) Decode() (Payload, error) {
	p := newPayload(e.Type)
	if p == nil {
		return nil, fmt.Errorf("unknown event type %q", e.Type)
	}
	err := canon.Unmarshal(e.Payload, p)
	if err == nil {
		return p, nil
	}
	if command := new(CommandItem); e.Type == TypeTurnItem && canon.Unmarshal(e.Payload, command) == nil && command.Item.Type == CommandExecution {
		return command, nil
	}
	if step := new(TraceItem); e.Type == TypeTurnItem && canon.Unmarshal(e.Payload, step) == nil && step.Item.isTrace() {
		return step, nil
	}
	return nil, fmt.Errorf("%s payload: %w", e.Type, err)
}
