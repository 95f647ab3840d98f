package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// TypeAcceptTip is the one event of the ledger itself, in the events.jsonl at
// its root. These events have the envelope of a transaction's, and a chain of
// their own.
const TypeAcceptTip Type = "ledger/accept_tip"

// An AcceptTip says that a human took a tip for the ledger's although it does
// not descend from the one remembered. The commit that brings it is the child
// of AcceptedTip.
type AcceptTip struct {
	AcceptedTip   string `json:"accepted_tip"`
	RememberedTip string `json:"remembered_tip"`
	Author        Actor  `json:"author"`
	Reason        string `json:"reason"`
}

// Type is TypeAcceptTip.
func (*AcceptTip) Type() Type { return TypeAcceptTip }

// ReadLedgerEvents reads the ledger's own events and refuses what
// AppendLedgerEvent would not have written.
func ReadLedgerEvents(raw []byte) ([]AcceptTip, error) {
	var all []AcceptTip
	var prev *string
	for line := range bytes.Lines(raw) {
		n := len(all) + 1
		var e Event
		var p AcceptTip
		if err := canon.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("event %d: %w", n, err)
		}
		switch {
		case e.Seq != n, e.Type != TypeAcceptTip, !isTime(e.Timestamp), line[len(line)-1] != '\n':
			return nil, fmt.Errorf("event %d: not an event of the ledger's own", n)
		case (e.Prev == nil) != (prev == nil), prev != nil && *e.Prev != *prev:
			return nil, fmt.Errorf("event %d: prev is not the hash of the line before", n)
		}
		if err := canon.Unmarshal(e.Payload, &p); err != nil {
			return nil, fmt.Errorf("event %d: %w", n, err)
		}
		sum := canon.Sum(line)
		all, prev = append(all, p), &sum
	}
	return all, nil
}

// AppendLedgerEvent adds an event to the ledger's own, which may be nil.
func AppendLedgerEvent(raw []byte, at time.Time, p AcceptTip) ([]byte, error) {
	earlier, err := ReadLedgerEvents(raw)
	if err != nil {
		return nil, err
	}
	payload, err := canon.Marshal(&p)
	if err != nil {
		return nil, err
	}
	e := Event{Seq: len(earlier) + 1, Timestamp: FormatTime(at), Type: TypeAcceptTip, Payload: payload}
	if len(earlier) > 0 {
		sum := canon.Sum(raw[bytes.LastIndexByte(raw[:len(raw)-1], '\n')+1:])
		e.Prev = &sum
	}
	line, err := canon.Line(e)
	return append(slices.Clip(raw), line...), err
}

// AcceptEntry is the commit that records an acceptance on the accepted tip's
// tree. The caller has scrubbed p, as who audits makes the entry again.
func AcceptEntry(tree fs.FS, at time.Time, p AcceptTip) (Entry, error) {
	raw, err := fs.ReadFile(tree, LedgerEventsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Entry{}, err
	}
	events, err := AppendLedgerEvent(raw, at, p)
	if err != nil {
		return Entry{}, fmt.Errorf("%s: %w", LedgerEventsFile, err)
	}
	message := fmt.Sprintf("accept-tip: %s accepted %.12s: %s\n\nCountersign-Stage: accept-tip\n", OneLine(p.Author.Login, 60), p.AcceptedTip, OneLine(p.Reason, 120))
	return Entry{Message: message, When: at, Files: map[string][]byte{LedgerEventsFile: events}}, nil
}
