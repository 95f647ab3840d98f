package writing

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Join adds to one log of a transaction what another one has that began the
// same way. Requests, decisions and notes of what is stored commute with each
// other and with what only one of the two did besides; everything else that both
// did contradicts.
type Join struct {
	log     *ledger.Log
	common  int               // how many events both have
	renamed map[string]string // requests of the other log, by their ids there
	hard    bool              // the log has more than what commutes
	advised bool              // the log has advice that the other side did not know
	untold  bool              // a further proposal was left out, whose proposer may have approved it since

	overruled bool // an approval was left out, as the log has a denial
}

// NewJoin begins after the first events, which both logs have.
func NewJoin(log *ledger.Log, common int) *Join {
	j := &Join{log: log, common: min(common, len(log.Payloads())), renamed: map[string]string{}}
	j.hard = slices.ContainsFunc(log.Payloads()[j.common:], func(p ledger.Payload) bool { return !commutes(p) })
	j.advised = slices.ContainsFunc(log.Payloads()[j.common:], func(p ledger.Payload) bool {
		a, is := p.(*ledger.ArtifactStored)
		return is && a.Kind == ledger.KindAdvice
	})
	return j
}

func commutes(p ledger.Payload) bool {
	switch p := p.(type) {
	case *ledger.ApprovalRequest, *ledger.ArtifactStored:
		return true
	case *ledger.ApprovalDecision:
		return p.Decision == ledger.Approve
	case *ledger.StatusChange:
		return p.To == ledger.Awaiting || p.From == ledger.Awaiting && p.To == ledger.Proposed
	case *ledger.CommandItem:
		return p.Item.Metadata.When == "after"
	case *ledger.ValidateStart:
		return true
	case *ledger.ValidateComplete:
		return !p.Success
	}
	return false
}

// Repeats reports whether a log, after the events that another one begins with as well, only says that the patch which
// the other has applied since was applied here too. Nothing else that counts is in it: no denial, no further proposer,
// and nothing that failed.
func Repeats(log, other *ledger.Log) bool {
	common, theirs := 0, slices.Collect(bytes.Lines(other.Bytes()))
	for line := range bytes.Lines(log.Bytes()) {
		if common == len(theirs) || !bytes.Equal(line, theirs[common]) {
			break
		}
		common++
	}
	applied := func(l *ledger.Log) bool {
		done := func(p ledger.Payload) bool { c, ok := p.(*ledger.ApplyComplete); return ok && c.Success }
		return (l.Transaction().Status == ledger.Applied || l.Transaction().Status == ledger.Completed) && slices.ContainsFunc(l.Payloads()[common:], done)
	}
	return applied(log) && applied(other) && log.Transaction().PatchID() == other.Transaction().PatchID() && !slices.ContainsFunc(log.Payloads()[common:], func(p ledger.Payload) bool {
		switch p := p.(type) {
		case *ledger.ApprovalDecision:
			return p.Decision == ledger.Deny
		case *ledger.ArtifactStored:
			return p.Kind == ledger.KindAgain
		case *ledger.ApplyComplete:
			return !p.Success
		case *ledger.ValidateComplete:
			return !p.Success
		}
		return false
	})
}

// Log is what was joined so far.
func (j *Join) Log() *ledger.Log { return j.log }

// Overruled reports whether an approval was left out, as the log has a denial.
func (j *Join) Overruled() bool { return j.overruled }

// Add adds the events of the other log from one to before another, and tells
// whether any was new. The error says what contradicts.
func (j *Join) Add(other *ledger.Log, from, to int) (added bool, err error) {
	before := len(j.log.Events())
	for i := from; i < to; i++ {
		at, err := other.Time(i)
		if err != nil {
			return false, err
		}
		if err := j.add(at, other.Payloads()[i], other.Events()[i]); err != nil {
			return false, fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	return len(j.log.Events()) > before, nil
}

// add adds a payload with what a later version added to its event.
func (j *Join) add(at time.Time, p ledger.Payload, e ledger.Event) error {
	if q, is := p.(*ledger.ApprovalRequest); is {
		return j.request(at, *q, e)
	}
	if left, err := j.leaveOut(p); left || err != nil {
		return err
	}
	if _, applies := p.(*ledger.ApplyStart); applies && j.advised { // it might need more approvals than it had
		return errors.New("an apply, and the other side has advice that it did not wait for")
	}
	if j.hard && !commutes(p) {
		return fmt.Errorf("%s, and the other side went on as well", p.Type())
	}
	p, err := j.adapt(at, p)
	if err != nil {
		return err
	}
	return j.log.AppendGrown(at, p, e)
}

// leaveOut reports whether a payload says nothing new here; one that the other side's contradicts is an error.
func (j *Join) leaveOut(p ledger.Payload) (bool, error) {
	tx := j.log.Transaction()
	switch p := p.(type) {
	case *ledger.ArtifactStored:
		stored := func(a *ledger.ArtifactStored) bool { return a.Path == p.Path }
		if tx.Closed || slices.ContainsFunc(ledger.Of[*ledger.ArtifactStored](j.log), stored) {
			return true, nil // of a closed one it is a note of what nobody needs any more
		}
		if p.Kind == ledger.KindAgain && len(j.log.Artifacts(ledger.KindAgain)) >= ledger.MaxAgain { // left out, its proposer could approve
			return false, fmt.Errorf("%d further proposals are recorded already", ledger.MaxAgain)
		}
		if again := p.Kind == ledger.KindAgain || p.Kind == ledger.KindTrace; again && !TakesProposals(j.log) { // a trace comes with one
			j.untold = j.untold || p.Kind == ledger.KindAgain
			return true, nil
		}
	case *ledger.ApprovalDecision:
		if tx.Status == ledger.Denied { // the other's denial is as final, and an approval changes nothing
			j.overruled = j.overruled || p.Decision != ledger.Deny
			return true, nil
		}
		if j.untold && p.Decision == ledger.Approve {
			return false, errors.New("an approval after a further proposal that is not recorded here")
		}
	case *ledger.StatusChange:
		if p.To == tx.Status || commutes(p) && p.From != tx.Status {
			return true, nil
		}
		if p.To == ledger.Awaiting && len(OpenRequests(j.log)) == 0 {
			return true, nil // what was asked is answered
		}
	case *ledger.CommandItem, *ledger.ValidateStart, *ledger.ValidateComplete:
		if tx.Closed && commutes(p) {
			return true, nil // the other side has found all as approved since, and nothing follows an end
		}
	case *ledger.Close:
		if tx.Closed && p.Status == tx.Status && tx.Status == ledger.Denied {
			return true, nil
		}
	}
	return false, nil
}

// adapt is a payload as it stands behind the other side's: it names the request, the item and the validation that it has here.
func (j *Join) adapt(at time.Time, p ledger.Payload) (ledger.Payload, error) {
	switch q := p.(type) {
	case *ledger.ApprovalDecision:
		d := *q
		return &d, j.answers(at, &d)
	case *ledger.CommandItem:
		c := *q
		c.Item.ID = NextItem(j.log)
		return &c, nil
	case *ledger.ValidateStart:
		return NextValidate(j.log), nil
	case *ledger.ValidateComplete:
		c := *q
		if begun := ledger.Last[*ledger.ValidateStart](j.log); begun != nil {
			c.ValidateID = begun.ValidateID
		}
		return &c, nil
	case *ledger.StatusChange:
		s, between, now := *q, []ledger.Status{ledger.Proposed, ledger.Awaiting}, j.log.Transaction().Status // a request moves between these two
		if slices.Contains(between, s.From) && slices.Contains(between, now) {
			s.From = now
		}
		return &s, nil
	}
	return p, nil
}

// answers finds the request that a decision answers. One that is answered
// already is asked again: two people may have said the same.
func (j *Join) answers(at time.Time, d *ledger.ApprovalDecision) error {
	asked := d.ApprovalRequestID
	if id, ok := j.renamed[asked]; ok {
		d.ApprovalRequestID = id
	}
	q := j.log.Request(d.ApprovalRequestID)
	if q == nil || slices.ContainsFunc(OpenRequests(j.log), func(r ledger.ApprovalRequest) bool { return r.ApprovalRequestID == d.ApprovalRequestID }) {
		return nil // the log takes it, or says that nobody asked
	}
	if err := j.ask(at, asked, *q, ledger.Event{}); err != nil {
		return err
	}
	d.ApprovalRequestID = j.renamed[asked]
	return nil
}

// request takes a request that the other side made for the same one, whether it
// is answered or not, or opens it. What is closed asks for nothing.
func (j *Join) request(at time.Time, q ledger.ApprovalRequest, e ledger.Event) error {
	taken := map[string]bool{}
	for _, id := range j.renamed {
		taken[id] = true
	}
	for _, p := range j.log.Payloads()[j.common:] {
		same, ok := p.(*ledger.ApprovalRequest)
		if ok && same.Fingerprint == q.Fingerprint && same.Kind == q.Kind && !taken[same.ApprovalRequestID] {
			j.renamed[q.ApprovalRequestID] = same.ApprovalRequestID
			return nil
		}
	}
	if j.log.Transaction().Closed {
		return nil
	}
	return j.ask(at, q.ApprovalRequestID, q, e)
}

func (j *Join) ask(at time.Time, instead string, q ledger.ApprovalRequest, e ledger.Event) error {
	q.ApprovalRequestID = fmt.Sprintf("req_%d", len(ledger.Of[*ledger.ApprovalRequest](j.log))+1)
	j.renamed[instead] = q.ApprovalRequestID
	return j.log.AppendGrown(at, &q, e)
}
