package explain

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// UnknownVerdict is the state of a verdict that a record does not tell.
const UnknownVerdict approval.State = "unknown"

// A Rejudged is what a recorded transaction came to, and what it would have come to by
// another Policy with the same proposal and the same words of the same people.
//
// Then is the recorded verdict, made at the time At by Policy. Least is the other Policy's
// verdict where nothing counts that the record does not tell, Best that where all of it is
// in favour: Untold says what that is. Where the two are of one state, this is the verdict
// whatever the truth is, as more that counts never makes less of an approval.
type Rejudged struct {
	At     time.Time
	Policy policy.Policy
	Then   approval.Verdict
	Least  approval.Verdict
	Best   approval.Verdict
	Untold []string

	events int // that the verdicts are on
}

// State is the state of the other Policy's verdict, UnknownVerdict where that depends on what the
// record does not tell.
func (r Rejudged) State() approval.State {
	if r.Least.State != r.Best.State {
		return UnknownVerdict
	}
	return r.Least.State
}

// Rejudge decides again on a transaction, whose record was verified, by another Policy at
// the moment of its recorded verdict: of its merge or its last apply, else of the last event
// while it was open. Denials are what the ledger holds against the patch. It is an error where the
// record does not tell its own verdict.
func Rejudge(ps *approval.Policies, dir fs.FS, log *ledger.Log, denials []ledger.Denial, p policy.Policy) (Rejudged, error) {
	m, err := lastVerdict(ps, dir, log, denials)
	if err != nil {
		return Rejudged{}, err
	}
	r := Rejudged{At: m.at, Policy: m.policy, Then: m.then, events: m.events}
	if r.Least, err = m.under(p, false); err == nil {
		r.Best, err = m.under(p, true)
	}
	if err != nil {
		return Rejudged{}, err
	}
	if why := m.denialInDoubt(p); why != "" && r.Least.State == approval.Denied {
		r.Best.State, r.Best.Reason = UnknownVerdict, why
		m.note("%s", why)
	}
	if kept := len(m.before.Artifacts(approval.KindStatement)); kept >= forge.KeptStatements {
		r.Best.State = UnknownVerdict
		m.note("%d statements are recorded, and what else was said without counting is not", kept)
	}
	// The same questions have the same answers, whatever these were.
	if r.State() == UnknownVerdict && m.asksTheSame(p) {
		r.Least, r.Best, m.untold = m.then, m.then, nil
	}
	if r.State() == UnknownVerdict {
		r.Untold = m.untold
	}
	return r, nil
}

// A moment is that of a recorded verdict, with what the record tells of it.
type moment struct {
	*approval.Record
	policies *approval.Policies
	events   int // that it is on
	at       time.Time
	policy   policy.Policy
	then     approval.Verdict
	before   *ledger.Log // the log of these
	denials  []ledger.Denial

	standing *approval.Standing          // of a pull request, nil where nothing tells what still stood
	drift    func(string) approval.Drift // nil where nobody measured it
	asked    map[[2]string]bool          // (team or path, id of an account): what the forge was asked then
	untold   []string
	decided  func() (approval.Case, error) // the case of then, nil where the record does not have it whole
}

// note adds what is not told, once.
func (m *moment) note(format string, args ...any) {
	if why := fmt.Sprintf(format, args...); !slices.Contains(m.untold, why) {
		m.untold = append(m.untold, why)
	}
}

// lastVerdict finds the moment of the verdict that a transaction ended with, or stands at.
func lastVerdict(ps *approval.Policies, dir fs.FS, log *ledger.Log, denials []ledger.Denial) (*moment, error) {
	m := &moment{Record: ps.Record(dir, log), policies: ps, asked: map[[2]string]bool{}}
	event, ref, done := log.DecidedAt()
	tx := log.Transaction()
	begun := ledger.Last[*ledger.ApplyStart](log) != nil
	if tx.Pointers.Proposal == nil {
		return nil, errors.New("nothing is proposed")
	}
	if tx.Status == ledger.Denied || !done && !begun {
		return m, m.openVerdict(denials)
	}
	m.events = event
	var err error
	if m.at, err = log.Time(event); err != nil {
		return nil, err
	}
	known, err := m.At(event, m.at, policy.Policy{})
	if err != nil {
		return nil, err
	}
	m.before = known.Log
	if tx.PullRequest() > 0 {
		standing, err := m.Standing(m.before)
		if err != nil {
			return nil, err
		}
		m.standing = &standing
		if tx.GateOnly() {
			ref = standing.Policy
		}
	}
	if m.policy, _, err = ps.Recorded(dir, log, ref); err != nil {
		return nil, err
	}
	if doc, err := approval.LastDrift(dir, m.before.Payloads()); err == nil {
		m.drift = doc.Of
	}
	if m.then, err = m.Approved(event, ref); err != nil {
		return nil, err
	}
	m.decided = func() (approval.Case, error) { return m.Before(event, ref) }
	return m, m.noteQuestions()
}

// openVerdict fills in a moment of a transaction that never came to an apply. What it stood at
// then is its status; only where nobody asked yet does the record have to be decided on.
func (m *moment) openVerdict(denials []ledger.Denial) error {
	log := m.Log
	last := len(log.Events()) - 1
	ref := ledger.PolicyRef{Commit: log.Meta().PolicyCommit, SHA256: log.Transaction().Pointers.Proposal.PolicySHA256}
	status, approved := ledger.Created, false
	for i, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.ApprovalRequest:
			ref = p.Policy
		case *ledger.ApprovalDecision:
			ref = p.Policy
		case *ledger.StatusChange:
			if p.To == ledger.Interrupted || p.To == ledger.Superseded || p.To == ledger.Denied {
				last = min(last, i-1)
			}
			if p.To != ledger.Interrupted && p.To != ledger.Superseded {
				approved, status = p.From == ledger.Awaiting && p.To == ledger.Proposed, p.To
			}
		}
	}
	m.events = last + 1
	var err error
	if m.at, err = log.Time(last); err != nil {
		return err
	}
	if m.policy, _, err = m.policies.Recorded(m.Dir, log, ref); err != nil {
		return err
	}
	known, err := m.At(m.events, m.at, m.policy)
	if err != nil {
		return err
	}
	m.before = known.Log
	if status == ledger.Denied {
		m.denials = denials
	}
	if m.then, err = m.under(m.policy, true); err != nil {
		return err
	}
	switch {
	case status == ledger.Denied && m.then.State != approval.Denied:
		return errors.New("it is denied, and no denial of its patch is recorded")
	case status == ledger.Awaiting && m.then.State == approval.Approved:
		m.then.State, m.then.Reason = approval.Pending, "approval asked for"
	case approved && m.then.State != approval.Denied:
		m.then.State = approval.Approved
	}
	m.untold = nil
	return nil
}

// noteQuestions finds out what the forge was asked about people for the verdict of then.
func (m *moment) noteQuestions() error {
	if m.standing == nil {
		return nil
	}
	c, err := m.At(m.events, m.at, m.policy)
	if err != nil {
		return err
	}
	c = c.On(*m.standing)
	c.Drift = m.drift
	teams, owners := c.Teams, c.Owners
	c.Teams = func(team string, who ledger.Actor) (bool, error) {
		m.asked[[2]string{"team " + team, who.ID}] = true
		return teams(team, who)
	}
	c.Owners = func(path string, who ledger.Actor) (bool, error) {
		m.asked[[2]string{"path " + path, who.ID}] = true
		return owners(path, who)
	}
	c.Decide()
	return nil
}
