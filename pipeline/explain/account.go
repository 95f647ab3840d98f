package explain

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Strength says how well it is told who made a decision; docs/explain.md has what each
// means. "" is none.
type Strength string

// The strengths, from the strongest.
const (
	Hardware   Strength = "hardware"
	Signed     Strength = "signed"
	ForgeTwice Strength = "forge_twice"
	Forge      Strength = "forge"
	Shell      Strength = "shell"
)

// Strengths are all of them, the strongest first.
var Strengths = []Strength{Hardware, Signed, ForgeTwice, Forge, Shell}

// AtLeast reports whether s is as strong as least, which every Strength is if least is "".
func (s Strength) AtLeast(least Strength) bool {
	if least == "" {
		return true
	}
	i := slices.Index(Strengths, s)
	return i >= 0 && i <= slices.Index(Strengths, least)
}

// Words say how the decisions were made.
func (s Strength) Words() string {
	return map[Strength]string{
		Hardware: "signed with a security key", Signed: "signed", ForgeTwice: "by accounts of the forge, asked twice",
		Forge: "by accounts of the forge, asked once", Shell: "in a shell, unsigned",
	}[s]
}

// Kind is the word that a Policy has for decisions of a strength.
func (s Strength) Kind() policy.DecisionKind {
	switch s {
	case Hardware, Signed:
		return policy.SignedDecision
	case ForgeTwice, Forge:
		return policy.ForgeDecision
	}
	return policy.LocalDecision
}

// Terms are what a recorded verdict is held to for what it accounts for: the Policy that
// the branch had. Listed reports whether the list of keys of that Policy has a line, for a
// transaction that began at a time; nil is no list. Owners reports whether its CODEOWNERS
// file is the one that the record's answers are from. Kinds are the decisions that account
// for a commit, Least how strong they must be. Made is when the change was there at the
// latest, zero if that is not known, by the clock of the forge; Recorded is the same by the
// events of the ledger.
type Terms struct {
	Policy         policy.Policy
	Listed         func(line string, began time.Time) bool
	Owners         func() bool
	Kinds          []policy.DecisionKind
	Least          Strength
	Made, Recorded time.Time
}

// An Account is what a transaction's record is worth on some Terms. Then is the recorded
// verdict, Verdict the one decided again. Unknown is what the record does not tell that
// this depends on. Strength is that of what makes up for the verdict; Enough is false where
// this is too weak. Late is true where it was not approved yet when it was made.
type Account struct {
	Then, Verdict approval.Verdict
	Unknown       []string
	Strength      Strength
	Enough, Late  bool
}

// OnTerms decides again on a transaction, whose record was verified, on other Terms.
// Denials are what the ledger holds against the patch, where the change is not settled.
func OnTerms(ps *approval.Policies, dir fs.FS, log *ledger.Log, denials []ledger.Denial, t Terms) (a Account, err error) {
	m, err := lastVerdict(ps, dir, log, denials)
	if err != nil {
		return a, err
	}
	if a.Then = m.then; a.Then.State != approval.Approved {
		return a, nil
	}
	if a.Verdict, a.Unknown, err = m.on(t, nil); err != nil || a.Verdict.State != approval.Approved {
		return a, err
	}
	approved := func(counts func(ledger.ApprovalDecision) bool) (bool, error) {
		v, _, err := m.on(t, counts)
		return v.State == approval.Approved, err
	}
	counted := m.strengths(a.Verdict)
	for _, least := range Strengths {
		if !slices.Contains(counted, least) {
			continue
		}
		ok, err := approved(func(d ledger.ApprovalDecision) bool { return m.strength(d).AtLeast(least) })
		if err != nil {
			return a, err
		}
		if ok {
			a.Strength = least
			break
		}
	}
	a.Enough, err = approved(func(d ledger.ApprovalDecision) bool {
		s := m.strength(d)
		return slices.Contains(t.Kinds, s.Kind()) && s.AtLeast(t.Least)
	})
	if err != nil || t.Made.IsZero() && t.Recorded.IsZero() {
		return a, err
	}
	intime, err := approved(func(d ledger.ApprovalDecision) bool { return m.inTime(d, t) })
	a.Late = !intime
	return a, err
}

// on is the verdict of that moment on some Terms, where of the approvals only those count
// that counts takes; nil takes all.
func (m *moment) on(t Terms, counts func(ledger.ApprovalDecision) bool) (v approval.Verdict, unknown []string, err error) {
	p, proposed := t.Policy, m.Log.Transaction().Pointers.Proposal
	said, err := approval.Advised(m.Dir, m.Log, m.events)
	if err != nil {
		return v, nil, err
	}
	needs := p.Needs(proposed.TargetFiles, proposed.ContainsSecrets, said...)
	if slices.ContainsFunc(needs, func(n policy.Need) bool { return n.Owners }) && !t.Owners() {
		return approval.Verdict{State: UnknownVerdict}, []string{"who owned the files by the branch's CODEOWNERS"}, nil
	}
	decide := func(c approval.Case) approval.Verdict {
		if signedBy := c.Signed; t.Listed != nil {
			c.Signed = func(d ledger.ApprovalDecision) (time.Time, error) {
				if err := m.listed(d, t.Listed); err != nil {
					return time.Time{}, err
				}
				return signedBy(d)
			}
		}
		if counts != nil {
			c.Passes = func(d ledger.ApprovalDecision) string {
				if counts(d) {
					return ""
				}
				return "is too weak, or too late"
			}
		}
		return c.Decide()
	}
	if m.asksTheSame(p) && m.decided != nil { // the same questions have the same answers
		c, err := m.decided()
		if err != nil {
			return v, nil, err
		}
		return decide(c), nil, nil
	}
	m.untold = nil
	best, err := m.caseUnder(p, true)
	if err != nil {
		return v, nil, err
	}
	least, err := m.caseUnder(p, false)
	if err != nil {
		return v, nil, err
	}
	v = decide(least)
	if v.State == approval.Denied && m.denialInDoubt(p) != "" || decide(best).State != v.State {
		if counts == nil && !m.asksTheSame(p) {
			return approval.Verdict{State: UnknownVerdict}, m.untold, nil
		}
		v = decide(best)
	}
	return v, nil, nil
}

// listed holds the recorded line of a decision's key to a list.
func (m *moment) listed(d ledger.ApprovalDecision, has func(string, time.Time) bool) error {
	_, line, err := approval.ReadSignature(m.Dir, m.Log, d)
	if err != nil {
		return err
	}
	began, err := m.Log.Time(0)
	if err == nil && !has(line, began) {
		err = errors.New("the branch's list of keys has another line for it, or none")
	}
	return err
}

// strengths are those of the approvals that count in a verdict.
func (m *moment) strengths(v approval.Verdict) (out []Strength) {
	for i, d := range ledger.Of[*ledger.ApprovalDecision](m.before) {
		if i < len(v.Decisions) && v.Decisions[i].Counted && d.Decision == ledger.Approve {
			out = append(out, m.strength(*d))
		}
	}
	return out
}

// strength is how well it is told who made a decision.
func (m *moment) strength(d ledger.ApprovalDecision) Strength {
	switch s := d.Source; {
	case s.Signature != nil:
		if _, proof, err := m.Proof(d); err == nil && proof.Hardware {
			return Hardware
		}
		return Signed
	case !approval.IsForge(s):
		return Shell
	}
	if m.askedAgain(d) {
		return ForgeTwice
	}
	return Forge
}

// askedAgain reports whether the forge was asked about an approval in a later stage than the one
// that recorded it, and told that it stood.
func (m *moment) askedAgain(d ledger.ApprovalDecision) bool {
	recorded, err := approval.DecidedIn(m.Log, d)
	if err != nil {
		return false
	}
	for i, p := range m.Log.Payloads() {
		a, is := p.(*ledger.ArtifactStored)
		if !is || a.Kind != approval.KindStanding {
			continue
		}
		at, err := m.Log.Time(i)
		if err != nil || !at.After(recorded) { // the events of a stage have one time
			continue
		}
		var s approval.Standing
		stood := func(s approval.StandingApproval) bool { return s.ApprovalRequestID == d.ApprovalRequestID && s.Stands }
		if approval.ReadArtifact(m.Dir, a, &s, &s.Schema) == nil && slices.ContainsFunc(s.Decisions, stood) {
			return true
		}
	}
	return false
}

// inTime reports whether a decision was made before the change was there.
func (m *moment) inTime(d ledger.ApprovalDecision, t Terms) bool {
	if !t.Made.IsZero() && approval.IsForge(d.Source) {
		said, err := time.Parse(time.RFC3339, d.Source.CreatedAt)
		if err != nil || said.After(t.Made) {
			return false
		}
	}
	if t.Recorded.IsZero() {
		return true
	}
	at, err := approval.DecidedIn(m.Log, d)
	return err == nil && !at.After(t.Recorded)
}

// Needed is why a verdict is not approved, in words.
func (a Account) Needed() string {
	switch {
	case a.Then.State != approval.Approved:
		return fmt.Sprintf("by its record its verdict is %s (%s)", a.Then.State, a.Then.Reason)
	case a.Verdict.State != approval.Approved:
		return fmt.Sprintf("by the Policy that the branch had its verdict is %s (%s)", a.Verdict.State, a.Verdict.Reason)
	}
	return ""
}
