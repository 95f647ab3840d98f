package ledger

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A Log is a transaction's events, in memory. Append is the only way to add
// one, so numbers, chain and status cannot go wrong. The zero Log is empty.
type Log struct {
	raw      []byte
	payloads []Payload
	events   []Event
	prev     *string
	tx       Transaction
	seen     seen
}

// Append adds one event. The error says why it may not happen in this state.
func (l *Log) Append(at time.Time, p Payload) error { return l.AppendGrown(at, p, Event{}) }

// AppendGrown is Append with what a later version added to an event.
func (l *Log) AppendGrown(at time.Time, p Payload, grown Event) error {
	e, line, err := newEvent(len(l.events)+1, l.prev, at, p, grown)
	if err != nil {
		return err
	}
	// The fold takes what a reader would decode, so that writer and reader
	// cannot see two things.
	again, err := e.Decode()
	if err != nil {
		return err
	}
	return l.add(e, again, line, canon.Sum(line))
}

func (l *Log) add(e Event, p Payload, line []byte, sum string) error {
	tx := l.tx
	err := tx.fold(e.Timestamp, p)
	if err == nil {
		err = l.seen.admit(p, tx)
	}
	if err != nil {
		if broken, ok := err.(*ruleError); ok {
			broken.line = e.Seq
		}
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	l.tx = tx
	l.seen.note(p)
	l.raw = append(l.raw, line...)
	l.events, l.payloads, l.prev = append(l.events, e), append(l.payloads, p), &sum
	return nil
}

// usual is how many events most logs have at most.
const usual = 24

// ReadLog reads events.jsonl and refuses what Append would not have written.
func ReadLog(raw []byte) (*Log, error) {
	l := &Log{raw: make([]byte, 0, len(raw)), events: make([]Event, 0, usual), payloads: make([]Payload, 0, usual)}
	err := readChain(raw, func(e Event, line []byte, sum string) error {
		p, err := e.Decode()
		if err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		return l.add(e, p, line, sum)
	})
	if err != nil {
		return nil, err
	}
	if len(l.events) == 0 {
		return nil, fmt.Errorf("no events")
	}
	return l, nil
}

func isTime(s string) bool {
	at, err := time.Parse(TimeFormat, s)
	return err == nil && FormatTime(at) == s
}

// seen is what has happened, kept so that an event is admitted without walking
// over all that were before it.
type seen struct {
	turns    map[string]bool             // by turn_id
	requests map[string]*ApprovalRequest // by approval_request_id
	answered map[string]bool             // by approval_request_id
	applyID  string                      // of the open apply, else ""
	applied  bool                        // the last event of an apply is that one succeeded

	validateID string // of the open validate, else ""
	validated  bool   // since the last status the last event of a validate is that one succeeded
}

// A ruleError is an event that breaks one of I1–I9.
type ruleError struct {
	rule string
	line int
	err  error
}

func (e *ruleError) Error() string { return e.err.Error() }

func breaks(rule, format string, args ...any) error {
	return &ruleError{rule: rule, err: fmt.Errorf(format, args...)}
}

// admit refuses an event of another transaction (T15), and one that refers to
// what is not there: an item of a turn that has not started, or with a status
// that no item has, a decision on no open request or on another fingerprint, an
// apply inside an apply. A record that breaks I4 to I8 is thus never written, and
// never acted upon. tx has the event folded in.
func (s *seen) admit(p Payload, tx Transaction) error {
	if id := transactionID(p); id != tx.TransactionID {
		return fmt.Errorf("%s is of transaction %q", p.Type(), id)
	}
	item := func(turn, id, typ string, follows bool) error {
		if !s.turns[turn] || id == "" || typ == "" {
			return breaks("I5", "item %q of turn %q has no place", id, turn)
		}
		if !follows {
			return fmt.Errorf("item %q of turn %q has no place: it is none of its type", id, turn)
		}
		return nil
	}
	switch p := p.(type) {
	case *TurnStart:
		if p.TurnID == "" || s.turns[p.TurnID] {
			return breaks("I4", "turn %q cannot start", p.TurnID)
		}
	case *TurnItem:
		return item(p.TurnID, p.Item.ID, p.Item.Type, p.Item.Follows())
	case *CommandItem:
		return item(p.TurnID, p.Item.ID, p.Item.Type, p.Item.follows())
	case *TraceItem:
		return item(p.TurnID, p.Item.ID, p.Item.Type, p.Item.follows())
	case *ApprovalRequest:
		if _, twice := s.requests[p.ApprovalRequestID]; twice {
			return breaks("I6", "request %q is made twice", p.ApprovalRequestID)
		}
		if p.ApprovalRequestID == "" {
			return breaks("I6", "request without an id")
		}
	case *ApprovalDecision:
		asked := s.requests[p.ApprovalRequestID]
		if asked == nil || s.answered[p.ApprovalRequestID] {
			return breaks("I6", "decision on %q, which is no open request", p.ApprovalRequestID)
		}
		if asked.Fingerprint != p.Fingerprint {
			return fmt.Errorf("decision on %q, which asks for no decision on %q", p.ApprovalRequestID, OneLine(p.Fingerprint, 100))
		}
	}
	return s.admitApply(p, tx)
}

// admitApply refuses what has no place in the order of applying and validating. A status says only what the events before
// it say: a change is applied if an apply succeeded last, and completed if a validate has since. Nothing is applied again
// that is applied, and a pull request's own diff never is; it is merged.
func (s *seen) admitApply(p Payload, tx Transaction) error {
	switch p := p.(type) {
	case *StatusChange:
		if p.To == Applied && (!s.applied || tx.GateOnly()) || p.To == Completed && !s.validated {
			return fmt.Errorf("%s, and no event before says so", p.To)
		}
	case *ApplyStart:
		if p.ApplyID == "" || s.applyID != "" {
			return breaks("I7", "apply %q cannot start while %q is open", p.ApplyID, s.applyID)
		}
		if tx.Status == Applied || tx.GateOnly() {
			return fmt.Errorf("apply %q of what is applied, or is only merged", p.ApplyID)
		}
	case *ApplyComplete:
		if p.ApplyID == "" || p.ApplyID != s.applyID {
			return breaks("I8", "apply %q is not open", p.ApplyID)
		}
	case *ValidateComplete:
		placed := tx.Status == Applied || tx.Status == Proposed && tx.GateOnly() && p.Success
		if p.ValidateID != s.validateID || p.Success != (p.Findings == "") || !placed {
			return fmt.Errorf("validate %q cannot end so", p.ValidateID)
		}
	case *Close:
		if !ends[p.Status] || s.applyID != "" {
			return fmt.Errorf("tx/close says %s, which is no end, or apply %q is open", p.Status, s.applyID)
		}
	}
	return nil
}

// note takes in an event that was admitted.
func (s *seen) note(p Payload) {
	if s.turns == nil {
		*s = seen{turns: map[string]bool{}, requests: map[string]*ApprovalRequest{}, answered: map[string]bool{}}
	}
	switch p := p.(type) {
	case *TurnStart:
		s.turns[p.TurnID] = true
	case *ApprovalRequest:
		s.requests[p.ApprovalRequestID] = p
	case *ApprovalDecision:
		s.answered[p.ApprovalRequestID] = true
	case *ApplyStart:
		s.applyID, s.applied = p.ApplyID, false
	case *ApplyComplete:
		s.applyID, s.applied = "", p.Success
	case *ValidateStart:
		s.validateID, s.validated = p.ValidateID, false
	case *ValidateComplete:
		s.validateID, s.validated = "", p.Success
	case *StatusChange:
		s.validated = false
	}
}

// Versions calls at with what the first ends[i] bytes of the log fold to, for
// each i in order. An audit reads the last events.jsonl of a transaction and so
// has all that were before it: each is a prefix, and the transaction.json beside
// it is canon.Line of what at is given. Nothing is parsed again.
//
// ends does not descend, and each of them ends a line; anything else, and an
// error of at, ends the walk with an error.
func (l *Log) Versions(ends []int64, at func(i int, tx Transaction) error) error {
	var tx Transaction
	var end int64 // of the n events that tx is the fold of
	n := 0
	for i, want := range ends {
		for ; end < want && n < len(l.events); n++ {
			end += int64(bytes.IndexByte(l.raw[end:], '\n')) + 1
			if err := tx.fold(l.events[n].Timestamp, l.payloads[n]); err != nil {
				panic("ledger: a log that does not fold: " + err.Error())
			}
		}
		if n == 0 || end != want {
			return fmt.Errorf("version %d: no event ends at byte %d", i+1, want)
		}
		if err := at(i, tx); err != nil {
			return err
		}
	}
	return nil
}

// First is the log of the first n events, of which nothing is parsed again.
func (l *Log) First(n int) *Log {
	first := &Log{events: make([]Event, 0, n), payloads: make([]Payload, 0, n)}
	for i, e := range l.events[:n] {
		line, _, _ := bytes.Cut(l.raw[len(first.raw):], []byte("\n"))
		sum := l.prev
		if i+1 < len(l.events) {
			sum = l.events[i+1].Prev
		}
		if err := first.add(e, l.payloads[i], line[:len(line)+1], *sum); err != nil {
			panic("ledger: a log that does not fold: " + err.Error())
		}
	}
	return first
}

// Clone is a copy that can go on otherwise.
func (l *Log) Clone() *Log {
	c := *l
	c.raw, c.events, c.payloads = slices.Clip(l.raw), slices.Clip(l.events), slices.Clip(l.payloads)
	c.seen.turns, c.seen.requests, c.seen.answered = maps.Clone(l.seen.turns), maps.Clone(l.seen.requests), maps.Clone(l.seen.answered)
	return &c
}

// Bytes is events.jsonl.
func (l *Log) Bytes() []byte { return l.raw }

// Events returns the events in order.
func (l *Log) Events() []Event { return l.events }

// Payloads returns the decoded payloads, one for each event.
func (l *Log) Payloads() []Payload { return l.payloads }

// Time is when an event happened, by its place in Events.
func (l *Log) Time(event int) (time.Time, error) {
	return time.Parse(TimeFormat, l.events[event].Timestamp)
}

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

// Last returns the last payload of one type; nil where there is none.
func Last[P Payload](l *Log) (last P) {
	for _, p := range slices.Backward(l.payloads) {
		if p, ok := p.(P); ok {
			return p
		}
	}
	return last
}

// LastFailed reports whether what the transaction's status is about did not succeed: of
// an applied change its last validate, else its last apply.
func (l *Log) LastFailed() bool {
	for _, p := range slices.Backward(l.payloads) {
		switch p := p.(type) {
		case *ValidateComplete:
			if l.tx.Status == Applied {
				return !p.Success
			}
		case *ApplyComplete:
			return l.tx.Status != Applied && !p.Success
		}
	}
	return false
}

// Stands is what says where the transaction stands (package plain).
func (l *Log) Stands() (status string, gateOnly, failed bool) {
	return string(l.tx.Status), l.tx.GateOnly(), l.LastFailed()
}

// DecidedAt returns the event that a verdict which is history was for, and the
// Policy that it went by: the apply/start of the apply that succeeded, or of a pull
// request's own diff that it was merged, where the standing has the Policy.
func (l *Log) DecidedAt() (event int, policy PolicyRef, done bool) {
	merged := l.tx.GateOnly() && l.tx.Status == Completed
	for i, p := range l.payloads {
		switch p := p.(type) {
		case *ApplyStart:
			event, policy = i, p.Policy
		case *ApplyComplete:
			done = done || p.Success
		case *ValidateComplete:
			if merged {
				event = i
			}
		}
	}
	return event, policy, done || merged
}

// Artifacts returns the artifacts of one kind, in order.
func (l *Log) Artifacts(kind string) []*ArtifactStored {
	return slices.DeleteFunc(Of[*ArtifactStored](l), func(a *ArtifactStored) bool { return a.Kind != kind })
}

// Request returns the approval request with an id, nil where there is none.
func (l *Log) Request(id string) *ApprovalRequest { return l.seen.requests[id] }

// Applying reports whether an apply was begun and has no end yet.
func (l *Log) Applying() bool {
	_, open := l.OpenApply()
	return open
}

// OpenApply returns the apply/start that has no apply/complete, if there is one:
// an apply that is going on, or was cut off.
func (l *Log) OpenApply() (ApplyStart, bool) {
	if l.seen.applyID == "" {
		return ApplyStart{}, false
	}
	return *Last[*ApplyStart](l), true
}
