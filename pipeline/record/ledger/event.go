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
// where prev is the SHA-256 of the line before with its LF, null for the first. It may
// also have extra and needs_version (package canon).
package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
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

// An Event is one line of events.jsonl. Seq counts from 1. Extra and Needs are of what a later
// version adds (package canon); this one writes neither.
type Event struct {
	Seq       int             `json:"seq"`
	Prev      *string         `json:"prev"`
	Timestamp string          `json:"timestamp"`
	Type      Type            `json:"type"`
	Payload   json.RawMessage `json:"payload"`
	Extra     json.RawMessage `json:"extra,omitempty"`
	Needs     string          `json:"needs_version,omitempty"`
}

// ReadEvent reads a line without its LF. What it is the payload of is not looked at.
func ReadEvent(body []byte) (e Event, err error) {
	if err = canon.UnmarshalDocument("it", body, &e); err == nil {
		err = canon.CheckGrowth("it", e.Extra, e.Needs)
	}
	return e, err
}

// A Payload is what one type of event carries.
type Payload interface{ Type() Type }

// TimeFormat is how an event's timestamp is written, always in UTC.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// FormatTime writes a moment as the ledger does.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }

var timeForm = canon.Regexp(`^[-0-9]{10}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)

// ParseTime reads a time of RFC 3339 to the letter, which time.Parse does not.
func ParseTime(text string) (time.Time, error) {
	if !timeForm().MatchString(text) {
		return time.Time{}, errors.New("it is no time of RFC 3339")
	}
	return time.Parse(time.RFC3339, text)
}

// Decode returns the event's payload as its type's struct pointer. A payload
// that the type would not be written as is an error: unknown or missing keys,
// another letter case.
func (e Event) Decode() (Payload, error) {
	empty, known := payloads[e.Type]
	if !known {
		return nil, fmt.Errorf("unknown event type %q", e.Type)
	}
	p := reflect.New(reflect.TypeOf(empty).Elem()).Interface().(Payload)
	err := canon.Unmarshal(e.Payload, p)
	if err == nil {
		return p, nil
	}
	if e.Type == TypeTurnItem {
		command, step := new(CommandItem), new(TraceItem)
		if canon.Unmarshal(e.Payload, command) == nil && command.Item.Type == CommandExecution {
			return command, nil
		}
		if canon.Unmarshal(e.Payload, step) == nil && step.Item.isTrace() {
			return step, nil
		}
	}
	return nil, fmt.Errorf("%s payload: %w", e.Type, err)
}

// Type names the event that carries the payload.
func (*Meta) Type() Type             { return TypeMeta }
func (*StatusChange) Type() Type     { return TypeStatus }
func (*TurnStart) Type() Type        { return TypeTurnStart }
func (*TurnItem) Type() Type         { return TypeTurnItem }
func (*CommandItem) Type() Type      { return TypeTurnItem }
func (*TraceItem) Type() Type        { return TypeTurnItem }
func (*ArtifactStored) Type() Type   { return TypeArtifact }
func (*ApprovalRequest) Type() Type  { return TypeRequest }
func (*ApprovalDecision) Type() Type { return TypeDecision }
func (*ApplyStart) Type() Type       { return TypeApplyStart }
func (*ApplyComplete) Type() Type    { return TypeApplyComplete }
func (*ValidateStart) Type() Type    { return TypeValidateStart }
func (*ValidateComplete) Type() Type { return TypeValidateComplete }
func (*Close) Type() Type            { return TypeClose }

// payloads has each type's payload.
var payloads = map[Type]Payload{
	TypeMeta: new(Meta), TypeStatus: new(StatusChange), TypeTurnStart: new(TurnStart), TypeTurnItem: new(TurnItem),
	TypeArtifact: new(ArtifactStored), TypeRequest: new(ApprovalRequest), TypeDecision: new(ApprovalDecision),
	TypeApplyStart: new(ApplyStart), TypeApplyComplete: new(ApplyComplete),
	TypeValidateStart: new(ValidateStart), TypeValidateComplete: new(ValidateComplete), TypeClose: new(Close),
}

// transactionID is the transaction that a payload names: every payload has that
// field.
func transactionID(p Payload) string {
	return reflect.ValueOf(p).Elem().FieldByName("TransactionID").String()
}

// An Actor is who did something. Kind is "user" for a person at a terminal,
// "bot" for an account that is never human. ID is stable where Login may change.
type Actor struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Login string `json:"login"`
}

// Redacted reports whether the id was taken out of a record as if it were a secret: who it is cannot be told.
func (a Actor) Redacted() bool { return strings.Contains(a.ID, "<REDACTED:") }

// SandboxPolicy says what a transaction's effects may reach.
type SandboxPolicy struct {
	Type          string   `json:"type"`
	WritableRoots []string `json:"writable_roots"`
	NetworkAccess bool     `json:"network_access"`
}

// ApprovalPolicy is the part of the Policy that decided what to ask for, as it
// stood at review.
type ApprovalPolicy struct {
	Required int  `json:"required"`
	Local    bool `json:"local"`
}

// Meta is tx/meta, always the first event. BaseCommit is the commit whose tree
// is patched, PolicyCommit the one the Policy was read from.
type Meta struct {
	TransactionID  string         `json:"transaction_id"`
	WorkspaceRoots []string       `json:"workspace_roots"`
	CWD            string         `json:"cwd"`
	SandboxPolicy  SandboxPolicy  `json:"sandbox_policy"`
	ApprovalPolicy ApprovalPolicy `json:"approval_policy"`
	Proposer       Actor          `json:"proposer"`
	BaseCommit     string         `json:"base_commit"`
	PolicyCommit   string         `json:"policy_commit"`
	Summary        string         `json:"summary"`
}

// A Status is where a transaction stands. docs/formats.md has the table.
type Status string

// The statuses.
const (
	Created     Status = "created"
	InProgress  Status = "in_progress"
	Proposed    Status = "proposed"
	Awaiting    Status = "awaiting_approval"
	Applied     Status = "applied"
	Completed   Status = "completed"
	Failed      Status = "failed"
	Interrupted Status = "interrupted"
	Denied      Status = "denied"
	Superseded  Status = "superseded"
)

// Statuses are all of them, in the order of a life.
var Statuses = []Status{Created, InProgress, Proposed, Awaiting, Applied, Completed, Failed, Interrupted, Denied, Superseded}

// StatusChange is tx/status.
type StatusChange struct {
	TransactionID string `json:"transaction_id"`
	From          Status `json:"from"`
	To            Status `json:"to"`
	Reason        string `json:"reason"`
}

// TurnStart is turn/start. Mode is "review" or "apply".
type TurnStart struct {
	TransactionID string `json:"transaction_id"`
	TurnID        string `json:"turn_id"`
	Input         string `json:"input"`
	Mode          string `json:"mode"`
}

// ArtifactStored is artifact/stored. ArtifactID is the bare hex SHA-256 of the
// stored bytes, StoredSHA256 the same as a "sha256:…" hash, Path is inside the
// transaction directory.
type ArtifactStored struct {
	TransactionID string `json:"transaction_id"`
	ArtifactID    string `json:"artifact_id"`
	Kind          string `json:"kind"`
	Path          string `json:"path"`
	ContentType   string `json:"content_type"`
	Redacted      bool   `json:"redacted"`
	StoredSHA256  string `json:"stored_sha256"`
}

// A PolicyRef says which Policy a stage went by: the commit that it was read
// from, and the "sha256:…" of its canonical JSON.
type PolicyRef struct {
	Commit string `json:"commit"`
	SHA256 string `json:"sha256"`
}

// ApprovalRequest is approval/request: one human is asked for one decision.
type ApprovalRequest struct {
	TransactionID     string    `json:"transaction_id"`
	TurnID            string    `json:"turn_id"`
	ApprovalRequestID string    `json:"approval_request_id"`
	ItemID            string    `json:"item_id"`
	Kind              string    `json:"kind"`
	Fingerprint       string    `json:"fingerprint"`
	Prompt            string    `json:"prompt"`
	Policy            PolicyRef `json:"policy"`
}

// A Decision is what a human said.
type Decision string

// The decisions.
const (
	Approve Decision = "approve"
	Deny    Decision = "deny"
)

// ApprovalDecision is approval/decision: the answer to one request.
type ApprovalDecision struct {
	TransactionID     string    `json:"transaction_id"`
	ApprovalRequestID string    `json:"approval_request_id"`
	Decision          Decision  `json:"decision"`
	Fingerprint       string    `json:"fingerprint"`
	Reason            string    `json:"reason,omitempty"`
	Source            Source    `json:"source"`
	Policy            PolicyRef `json:"policy"`
}

// A Source is where a decision was read. Kind is "local" for one taken with the
// command line, "review", "review_comment" or "issue_comment" for one of a pull
// request. Commit is HEAD, or the pull request's head, at that time, or the one
// that a review is of. Evidence is the path of the artifact that has the text
// and the answer of the forge about its author, "" for a local one.
type Source struct {
	Kind       string `json:"kind"`
	ID         string `json:"id"`
	URL        string `json:"url"`
	Author     Actor  `json:"author"`
	Permission string `json:"permission"`
	Commit     string `json:"commit"`
	BodySHA256 string `json:"body_sha256"`
	CreatedAt  string `json:"created_at"`
	Evidence   string `json:"evidence,omitempty"`

	Signature *Signature `json:"signature,omitempty"`
}

// A Signature is a decision that was signed with a person's own key:
// the paths of the artifacts with the statement, its SSH signature and the line of
// the allowed signers that lists the key. Principal is the name in that line by which
// the key is this author's, and KeyFingerprint the key's, "SHA256:…".
type Signature struct {
	Statement      string `json:"statement"`
	Signature      string `json:"signature"`
	Key            string `json:"key"`
	Principal      string `json:"principal"`
	KeyFingerprint string `json:"key_fingerprint"`
}

// An Approved is one fingerprint that so many people had to approve, and had.
type Approved struct {
	Kind        string `json:"kind"`
	Fingerprint string `json:"fingerprint"`
	Required    int    `json:"required"`
}

// ApplyStart is apply/start, the intent: recorded before anything is written.
// Approvals are what Policy asks for and what has been given.
type ApplyStart struct {
	TransactionID string     `json:"transaction_id"`
	ApplyID       string     `json:"apply_id"`
	PatchIDs      []string   `json:"patch_ids"`
	Files         []string   `json:"files"`
	Target        string     `json:"target"`
	BaseCommit    string     `json:"base_commit"`
	Approvals     []Approved `json:"approvals"`
	Policy        PolicyRef  `json:"policy"`
}

// ApplyComplete is apply/complete. ApplyArtifact is the path of the artifact
// that holds the ApplyResult; the commits are empty for a working tree.
type ApplyComplete struct {
	TransactionID string `json:"transaction_id"`
	ApplyID       string `json:"apply_id"`
	Success       bool   `json:"success"`
	Outcome       string `json:"outcome"`
	ApplyArtifact string `json:"apply_artifact"`
	Target        string `json:"target"`
	CommitBefore  string `json:"commit_before"`
	CommitAfter   string `json:"commit_after"`
}

// ValidateStart is validate/start.
type ValidateStart struct {
	TransactionID string `json:"transaction_id"`
	ValidateID    string `json:"validate_id"`
}

// ValidateComplete is validate/complete. Findings is the path of the artifact that
// lists what was not as approved, "" where all was.
type ValidateComplete struct {
	TransactionID string `json:"transaction_id"`
	ValidateID    string `json:"validate_id"`
	Success       bool   `json:"success"`
	Findings      string `json:"findings,omitempty"`
}

// Close is tx/close, always the last event.
type Close struct {
	TransactionID string `json:"transaction_id"`
	Status        Status `json:"status"`
}

// The types of the ledger's own events, in the events.jsonl at its root. These have the envelope of
// a transaction's, and a chain of their own.
const (
	TypeAcceptTip Type = "ledger/accept_tip"
	TypeVersion   Type = "ledger/version"
)

// An AcceptTip says that a human took a tip for the ledger's although it does
// not descend from the one remembered. The commit that brings it is the child
// of AcceptedTip.
type AcceptTip struct {
	AcceptedTip   string `json:"accepted_tip"`
	RememberedTip string `json:"remembered_tip"`
	Author        Actor  `json:"author"`
	Reason        string `json:"reason"`
}

// A Raise says that the ledger is of a newer version from its commit on. From is the version before.
type Raise struct {
	From    string `json:"from"`
	Version string `json:"version"`
	Author  Actor  `json:"author"`
	Reason  string `json:"reason"`
}

// Type names the event that carries the payload.
func (*AcceptTip) Type() Type { return TypeAcceptTip }
func (*Raise) Type() Type     { return TypeVersion }

// Said is what the event says, for people.
func (p *AcceptTip) Said() string {
	return fmt.Sprintf("%s accepted %.12s in place of %.12s: %s", p.Author.Login, p.AcceptedTip, p.RememberedTip, p.Reason)
}

// Said is what the event says, for people.
func (p *Raise) Said() string {
	return fmt.Sprintf("%s raised it from %s to %s: %s", p.Author.Login, p.From, p.Version, p.Reason)
}

// title is the first line of the commit that brings the event, and its stage.
func (p *AcceptTip) title() (title, stage string) {
	return fmt.Sprintf("accept-tip: %s accepted %.12s: %s", OneLine(p.Author.Login, 60), p.AcceptedTip, OneLine(p.Reason, 120)), "accept-tip"
}

func (p *Raise) title() (title, stage string) {
	return fmt.Sprintf("version: %s raised it from %s to %s: %s", OneLine(p.Author.Login, 60), p.From, p.Version, OneLine(p.Reason, 120)), "version"
}

// An Own is the payload of one of the ledger's own events.
type Own interface {
	Payload
	// Said is what the event says, for people.
	Said() string
	title() (title, stage string)
}

// ReadLedgerEvents reads the ledger's own events and refuses what OwnEntry would not have written; version is that of its
// ledger.json. What follows an event that raises the ledger to a version that this program does not know is not read: the
// error is a *canon.NewerError, and all are those up to it.
func ReadLedgerEvents(raw []byte, version string) (all []Own, err error) {
	err = readChain(raw, func(e Event, _ []byte, _ string) error {
		var p Own = new(AcceptTip)
		if e.Type == TypeVersion {
			p = new(Raise)
		}
		if e.Type != p.Type() {
			return fmt.Errorf("event %d: unknown event type %q", e.Seq, e.Type)
		}
		if err := canon.Unmarshal(e.Payload, p); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		all = append(all, p)
		r, ok := p.(*Raise)
		if !ok {
			return nil
		}
		if order, ok := canon.CompareVersions(r.Version, version); !ok || order <= 0 || r.From != version {
			return fmt.Errorf("event %d: from %.40q to %.40q is no raise of a ledger of %s", e.Seq, r.From, r.Version, version)
		}
		version = r.Version
		return canon.CheckVersion("the ledger", version)
	})
	return all, err
}

// readChain calls take for each event of events.jsonl, with its line and the hash of that, having held it to its place in the chain.
func readChain(raw []byte, take func(e Event, line []byte, sum string) error) error {
	n, prev, timestamp := 0, (*string)(nil), ""
	for line := range bytes.Lines(raw) {
		n++
		body, ended := bytes.CutSuffix(line, []byte("\n"))
		if !ended {
			return fmt.Errorf("event %d: line without its LF", n)
		}
		e, err := ReadEvent(body)
		if err != nil {
			return fmt.Errorf("event %d: %w", n, err)
		}
		switch {
		case e.Seq != n:
			return fmt.Errorf("event %d: seq is %d", n, e.Seq)
		case (e.Prev == nil) != (prev == nil) || e.Prev != nil && *e.Prev != *prev:
			return fmt.Errorf("event %d: prev is not the hash of the line before", n)
		// The events of a stage mostly have one time; what stands there was checked.
		case (n == 1 || e.Timestamp != timestamp) && !isTime(e.Timestamp):
			return fmt.Errorf("event %d: timestamp is not of the form %s", n, TimeFormat)
		}
		sum := canon.Sum(line)
		if err := take(e, line, sum); err != nil {
			return err
		}
		prev, timestamp = &sum, e.Timestamp
	}
	return nil
}

// OwnCommit is the commit that adds one of the ledger's own events to those of a ledger of a version: its message, and what
// events.jsonl is then. The caller has scrubbed p, as who audits makes the commit again.
func OwnCommit(version string, events []byte, at time.Time, p Own) (message string, grown []byte, err error) {
	if err := canon.CheckVersion("the ledger", version); err != nil {
		return "", nil, err
	}
	var prev *string
	if len(events) > 0 {
		sum := canon.Sum(events[bytes.LastIndexByte(events[:len(events)-1], '\n')+1:])
		prev = &sum
	}
	_, line, err := newEvent(bytes.Count(events, []byte("\n"))+1, prev, at, p, Event{})
	if err != nil {
		return "", nil, err
	}
	grown = append(slices.Clip(events), line...)
	if _, err := ReadLedgerEvents(grown, version); err != nil {
		return "", nil, fmt.Errorf("%s: %w", LedgerEventsFile, err)
	}
	title, stage := p.title()
	return title + "\n\nCountersign-Stage: " + stage + "\n", grown, nil
}

// newEvent is the event that follows on another one, and its line. grown has what a later version adds.
func newEvent(seq int, prev *string, at time.Time, p Payload, grown Event) (e Event, line []byte, err error) {
	payload, err := canon.Marshal(p)
	if err != nil {
		return e, nil, err
	}
	e = Event{Seq: seq, Prev: prev, Timestamp: FormatTime(at), Type: p.Type(), Payload: payload, Extra: grown.Extra, Needs: grown.Needs}
	line, err = canon.Line(e)
	return e, line, err
}
