package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Join adds to one log of a transaction what another one has that began the
// same way. Requests, decisions and notes of what is stored commute with each
// other and with what only one of the two did besides; everything else that both
// did contradicts.
type Join struct {
	log     *Log
	common  int               // how many events both have
	renamed map[string]string // requests of the other log, by their ids there
	hard    bool              // the log has more than what commutes
	untold  bool              // a further proposal was left out, whose proposer may have approved it since

	overruled bool // an approval was left out, as the log has a denial
}

// NewJoin begins after the first events, which both logs have.
func NewJoin(log *Log, common int) *Join {
	j := &Join{log: log, common: min(common, len(log.payloads)), renamed: map[string]string{}}
	j.hard = slices.ContainsFunc(log.payloads[j.common:], func(p Payload) bool { return !commutes(p) })
	return j
}

func commutes(p Payload) bool {
	switch p := p.(type) {
	case *ApprovalRequest, *ArtifactStored:
		return true
	case *ApprovalDecision:
		return p.Decision == Approve
	case *StatusChange:
		return p.To == Awaiting || p.From == Awaiting && p.To == Proposed
	case *CommandItem:
		return p.Item.Metadata.When == "after"
	case *ValidateStart:
		return true
	case *ValidateComplete:
		return !p.Success
	}
	return false
}

// Repeats reports whether a log, after the events that another one begins with as well, only says that the patch which
// the other has applied since was applied here too. Nothing else that counts is in it: no denial, no further proposer,
// and nothing that failed.
func Repeats(log, other *Log) bool {
	common, theirs := 0, slices.Collect(bytes.Lines(other.raw))
	for line := range bytes.Lines(log.raw) {
		if common == len(theirs) || !bytes.Equal(line, theirs[common]) {
			break
		}
		common++
	}
	applied := func(l *Log) bool {
		done := func(p Payload) bool { c, ok := p.(*ApplyComplete); return ok && c.Success }
		return (l.tx.Status == Applied || l.tx.Status == Completed) && slices.ContainsFunc(l.payloads[common:], done)
	}
	return applied(log) && applied(other) && log.tx.PatchID() == other.tx.PatchID() && !slices.ContainsFunc(log.payloads[common:], func(p Payload) bool {
		switch p := p.(type) {
		case *ApprovalDecision:
			return p.Decision == Deny
		case *ArtifactStored:
			return p.Kind == KindAgain
		case *ApplyComplete:
			return !p.Success
		case *ValidateComplete:
			return !p.Success
		}
		return false
	})
}

// Log is what was joined so far.
func (j *Join) Log() *Log { return j.log }

// Overruled reports whether an approval was left out, as the log has a denial.
func (j *Join) Overruled() bool { return j.overruled }

// Add adds the events of the other log from one to before another, and tells
// whether any was new. The error says what contradicts.
func (j *Join) Add(other *Log, from, to int) (added bool, err error) {
	before := len(j.log.events)
	for i := from; i < to; i++ {
		at, err := other.Time(i)
		if err != nil {
			return false, err
		}
		if err := j.add(at, other.payloads[i], other.events[i]); err != nil {
			return false, fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	return len(j.log.events) > before, nil
}

// add adds a payload with what a later version added to its event.
func (j *Join) add(at time.Time, p Payload, e Event) error {
	tx := j.log.tx
	switch p := p.(type) {
	case *ApprovalRequest:
		return j.request(at, *p, e)
	case *ArtifactStored:
		stored := func(a *ArtifactStored) bool { return a.Path == p.Path }
		if tx.Closed || slices.ContainsFunc(Of[*ArtifactStored](j.log), stored) {
			return nil // of a closed one it is a note of what nobody needs any more
		}
		if p.Kind == KindAgain && len(j.log.Artifacts(KindAgain)) >= MaxAgain { // left out, its proposer could approve
			return fmt.Errorf("%d further proposals are recorded already", MaxAgain)
		}
		if again := p.Kind == KindAgain || p.Kind == KindTrace; again && !j.log.TakesProposals() { // a trace comes with one
			j.untold = j.untold || p.Kind == KindAgain
			return nil
		}
	case *ApprovalDecision:
		if tx.Status == Denied { // the other's denial is as final, and an approval changes nothing
			j.overruled = j.overruled || p.Decision != Deny
			return nil
		}
		if j.untold && p.Decision == Approve {
			return errors.New("an approval after a further proposal that is not recorded here")
		}
	case *StatusChange:
		if p.To == tx.Status || commutes(p) && p.From != tx.Status {
			return nil
		}
		if p.To == Awaiting && len(j.log.OpenRequests()) == 0 {
			return nil // what was asked is answered
		}
	case *CommandItem, *ValidateStart, *ValidateComplete:
		if tx.Closed && commutes(p) {
			return nil // the other side has found all as approved since, and nothing follows an end
		}
	case *Close:
		if tx.Closed && p.Status == tx.Status && tx.Status == Denied {
			return nil
		}
	}
	if j.hard && !commutes(p) {
		return fmt.Errorf("%s, and the other side went on as well", p.Type())
	}
	switch q := p.(type) {
	case *ApprovalDecision:
		d := *q
		if err := j.answers(at, &d); err != nil {
			return err
		}
		p = &d
	case *CommandItem:
		c := *q
		c.Item.ID, p = j.log.NextItem(), &c
	case *ValidateStart:
		p = j.log.NextValidate()
	case *ValidateComplete:
		c := *q
		c.ValidateID, p = j.log.seen.validateID, &c
	case *StatusChange:
		s, between := *q, []Status{Proposed, Awaiting} // a request moves between these two
		if slices.Contains(between, s.From) && slices.Contains(between, tx.Status) {
			s.From = tx.Status
		}
		p = &s
	}
	return j.log.append(at, p, e)
}

// answers finds the request that a decision answers. One that is answered
// already is asked again: two people may have said the same.
func (j *Join) answers(at time.Time, d *ApprovalDecision) error {
	asked := d.ApprovalRequestID
	if id, ok := j.renamed[asked]; ok {
		d.ApprovalRequestID = id
	}
	if !j.log.seen.answered[d.ApprovalRequestID] {
		return nil
	}
	if err := j.ask(at, asked, *j.log.Request(d.ApprovalRequestID), Event{}); err != nil {
		return err
	}
	d.ApprovalRequestID = j.renamed[asked]
	return nil
}

// request takes a request that the other side made for the same one, whether it
// is answered or not, or opens it. What is closed asks for nothing.
func (j *Join) request(at time.Time, q ApprovalRequest, e Event) error {
	taken := map[string]bool{}
	for _, id := range j.renamed {
		taken[id] = true
	}
	for _, p := range j.log.payloads[j.common:] {
		same, ok := p.(*ApprovalRequest)
		if ok && same.Fingerprint == q.Fingerprint && same.Kind == q.Kind && !taken[same.ApprovalRequestID] {
			j.renamed[q.ApprovalRequestID] = same.ApprovalRequestID
			return nil
		}
	}
	if j.log.tx.Closed {
		return nil
	}
	return j.ask(at, q.ApprovalRequestID, q, e)
}

func (j *Join) ask(at time.Time, instead string, q ApprovalRequest, e Event) error {
	q.ApprovalRequestID = fmt.Sprintf("req_%d", len(Of[*ApprovalRequest](j.log))+1)
	j.renamed[instead] = q.ApprovalRequestID
	return j.log.append(at, &q, e)
}
