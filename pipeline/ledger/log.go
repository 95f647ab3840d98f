package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// A Log is a transaction's events, in memory. Append is the only way to add
// one, so numbers, chain and status cannot go wrong. The zero Log is empty.
type Log struct {
	raw      []byte
	payloads []Payload
	events   []Event
	prev     *string
	tx       Transaction
}

// Append adds one event. The error says why it may not happen in this state.
func (l *Log) Append(at time.Time, p Payload) error {
	payload, err := canon.Marshal(p)
	if err != nil {
		return err
	}
	// The fold takes what a reader would decode, so that writer and reader
	// cannot see two things.
	e := Event{Seq: len(l.events) + 1, Prev: l.prev, Timestamp: FormatTime(at), Type: p.Type(), Payload: payload}
	again, err := e.Decode()
	if err != nil {
		return err
	}
	line, err := canon.Line(e)
	if err != nil {
		return err
	}
	return l.add(e, again, line)
}

func (l *Log) add(e Event, p Payload, line []byte) error {
	tx := l.tx
	err := tx.fold(e.Timestamp, p)
	if err == nil {
		err = tx.owns(e) // an event of another transaction is not this one's (T15)
	}
	if err == nil {
		err = l.admit(p)
	}
	if err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	sum := canon.Sum(line)
	l.tx = tx
	l.raw = append(l.raw, line...)
	l.events, l.payloads, l.prev = append(l.events, e), append(l.payloads, p), &sum
	return nil
}

// ReadLog reads events.jsonl and refuses what Append would not have written.
func ReadLog(raw []byte) (*Log, error) {
	l := &Log{}
	for len(raw) > 0 {
		line, rest, ended := bytes.Cut(raw, []byte("\n"))
		if !ended {
			return nil, fmt.Errorf("event %d: line without its LF", len(l.events)+1)
		}
		if err := l.readLine(line); err != nil {
			return nil, err
		}
		raw = rest
	}
	if len(l.events) == 0 {
		return nil, fmt.Errorf("no events")
	}
	return l, nil
}

func (l *Log) readLine(line []byte) error {
	n := len(l.events) + 1
	var e Event
	if err := canon.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("event %d: %w", n, err)
	}
	if e.Seq != n {
		return fmt.Errorf("event %d: seq is %d", n, e.Seq)
	}
	if (e.Prev == nil) != (l.prev == nil) || e.Prev != nil && *e.Prev != *l.prev {
		return fmt.Errorf("event %d: prev is not the hash of the line before", n)
	}
	if at, err := time.Parse(TimeFormat, e.Timestamp); err != nil || FormatTime(at) != e.Timestamp {
		return fmt.Errorf("event %d: timestamp is not of the form %s", n, TimeFormat)
	}
	p, err := e.Decode()
	if err != nil {
		return fmt.Errorf("event %d: %w", n, err)
	}
	return l.add(e, p, append(slices.Clip(line), '\n'))
}

// Bytes is events.jsonl.
func (l *Log) Bytes() []byte { return l.raw }

// Events returns the events in order.
func (l *Log) Events() []Event { return l.events }

// Payloads returns the decoded payloads, one for each event.
func (l *Log) Payloads() []Payload { return l.payloads }

// Transaction is what the events fold to.
func (l *Log) Transaction() Transaction { return l.tx }

// Meta returns the first event's payload; the log must not be empty.
func (l *Log) Meta() Meta { return *l.payloads[0].(*Meta) }

// Of returns the payloads of one type, in order.
func Of[P Payload](l *Log) []P {
	var out []P
	for _, p := range l.payloads {
		if p, ok := p.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

// FileChange returns the item that proposes the patch, as it stands now.
func (l *Log) FileChange() (TurnItem, bool) {
	items := Of[*TurnItem](l)
	for _, it := range slices.Backward(items) {
		if it.Item.Type == "fileChange" {
			return *it, true
		}
	}
	return TurnItem{}, false
}

// OpenRequests returns the approval requests that nobody answered yet.
func (l *Log) OpenRequests() []ApprovalRequest {
	answered := map[string]bool{}
	for _, d := range Of[*ApprovalDecision](l) {
		answered[d.ApprovalRequestID] = true
	}
	var out []ApprovalRequest
	for _, r := range Of[*ApprovalRequest](l) {
		if !answered[r.ApprovalRequestID] {
			out = append(out, *r)
		}
	}
	return out
}

// OpenApply returns the apply/start that has no apply/complete, if there is one:
// an apply that is going on, or was cut off.
func (l *Log) OpenApply() (ApplyStart, bool) {
	starts, ends := Of[*ApplyStart](l), Of[*ApplyComplete](l)
	if len(starts) <= len(ends) {
		return ApplyStart{}, false
	}
	return *starts[len(starts)-1], true
}
