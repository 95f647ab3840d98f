package explain

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// under is the verdict of that moment by a Policy, where what the record does not tell is
// in favour of approval, or is not.
func (m *moment) under(p policy.Policy, favour bool) (approval.Verdict, error) {
	c, err := m.caseUnder(p, favour)
	if err != nil {
		return approval.Verdict{}, err
	}
	return c.Decide(), nil
}

// caseUnder is the case of under.
func (m *moment) caseUnder(p policy.Policy, favour bool) (approval.Case, error) {
	c, err := m.At(m.events, m.at, p)
	if err != nil {
		return c, err
	}
	c.Denials = m.denials
	said, deny, err := m.uncounted(p)
	if err != nil {
		return c, err
	}
	if deny != nil {
		c.Denials = append(slices.Clip(c.Denials), *deny)
	}
	if favour {
		if c.Log, err = m.with(said); err != nil {
			return c, err
		}
	} else if len(said) > 0 {
		m.note("whether %s would count that did not count then", ledger.Plural(len(said), "statement", "statements"))
	}
	m.people(&c, favour)
	m.signing(&c, favour)
	m.place(&c, favour)
	return c, nil
}

// voters lets a case ask who is in a team or owns a path, as far as that was asked then.
func (m *moment) people(c *approval.Case, favour bool) {
	ask := func(kind string, recorded func(approval.Standing) map[string][]string) func(string, ledger.Actor) (bool, error) {
		return func(of string, who ledger.Actor) (bool, error) {
			if m.standing != nil && slices.Contains(recorded(*m.standing)[of], who.ID) {
				return true, nil
			}
			if m.asked[[2]string{kind + " " + of, who.ID}] {
				return false, nil
			}
			verb := map[string]string{"team": "was in", "path": "owned"}[kind]
			m.note("whether %s %s %s", who.Login, verb, of)
			return favour, nil
		}
	}
	c.Teams = ask("team", func(s approval.Standing) map[string][]string { return s.Teams })
	c.Owners = ask("path", func(s approval.Standing) map[string][]string { return s.Owners })
	if listed := c.Policy.Approvals.Keys; listed != "" && listed != m.policy.Approvals.Keys && !favour {
		m.note("which accounts %s has for one person", listed)
		everybody := []string{"anybody"}
		for _, a := range append([]ledger.Actor{m.Log.Meta().Proposer}, c.Authors...) {
			everybody = append(everybody, approval.ListedAs(a))
		}
		c.People = func(names ...string) []string { return slices.Concat(names, everybody) }
	}
}

// signing lets a case verify signatures by the lines that the record has of keys. Another
// list of keys has these lines, or it has not.
func (m *moment) signing(c *approval.Case, favour bool) {
	verify := c.Signed
	a, then := c.Policy.Approvals, m.policy.Approvals
	otherKeys := a.Keys != then.Keys || a.ForgeKeys != then.ForgeKeys
	c.Signed = func(d ledger.ApprovalDecision) (time.Time, error) {
		switch {
		case d.Source.Signature.Statement == "": // one that did not count then
			return m.at, nil
		case otherKeys && !favour:
			m.note("whether the key of %s counts by the keys that it names", d.Source.Author.Login)
			return time.Time{}, errors.New("whether its key counts is not recorded")
		}
		return verify(d)
	}
}

// place tells a case on which commit it is, what has moved, and which comments still stand.
func (m *moment) place(c *approval.Case, favour bool) {
	p := &c.Policy.Approvals
	switch {
	case m.standing != nil:
		c.Head = m.standing.HeadCommit
	case p.SameHead && favour:
		p.SameHead = false
	case p.SameHead:
		m.note("which commit was the head when it was decided")
	}
	c.Drift = func(from string) approval.Drift {
		if m.drift != nil {
			if d := m.drift(from); d.Unknown == "" {
				return d
			}
		}
		if favour {
			return approval.Drift{From: from, To: from}
		}
		m.note("how far the base had moved since an approval")
		return approval.UnknownDrift(from, "", "it is not recorded")
	}
	if p.Drift == nil {
		c.Drift = nil
	}
	var recorded func(ledger.ApprovalDecision) string
	if m.standing != nil {
		recorded = c.On(*m.standing).Stands
	}
	c.Stands = func(d ledger.ApprovalDecision) string {
		switch known := m.before.Request(d.ApprovalRequestID) != nil; {
		case known && recorded != nil:
			return recorded(d)
		case favour:
			return approval.Refused(c.Policy, approval.Access{Permission: d.Source.Permission})
		}
		m.note("whether the approval of %s still stood", d.Source.Author.Login)
		return "whether it still stood is not recorded"
	}
}

// uncounted are the statements that did not count then and that another Policy could
// count, and a denial among them that it would have heard.
func (m *moment) uncounted(p policy.Policy) (said []approval.StatementDoc, deny *ledger.Denial, err error) {
	evidence := map[string]bool{}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](m.before) {
		evidence[d.Source.Evidence] = true
	}
	for _, a := range m.before.Artifacts(approval.KindStatement) {
		if evidence[a.Path] {
			continue
		}
		var doc approval.StatementDoc
		if err := approval.ReadArtifact(m.Dir, a, &doc, &doc.Schema); err != nil {
			return nil, nil, err
		}
		void := doc.Statement.Void(doc.Native)
		about := slices.Contains(policy.Fingerprints(m.before.Transaction().PatchID()), doc.Command.Fingerprint)
		switch who := doc.Statement.Author; {
		case !about:
		case doc.Command.Verb == approval.VerbApprove && void == "":
			said = append(said, doc)
		case doc.Command.Verb == approval.VerbDeny && approval.Refused(m.policy, doc.Access) != "" && approval.Refused(p, doc.Access) == "":
			deny = &ledger.Denial{Fingerprint: doc.Command.Fingerprint, Author: who, Reason: doc.Command.Reason}
		}
	}
	return said, deny, nil
}

// with is the log with approvals that were not recorded as decisions.
func (m *moment) with(said []approval.StatementDoc) (*ledger.Log, error) {
	if len(said) == 0 {
		return m.before, nil
	}
	log, head := m.before.Clone(), m.Log.Meta().BaseCommit
	if m.standing != nil {
		head = m.standing.HeadCommit
	}
	for i, doc := range said {
		source := forge.Remark{Statement: doc.Statement, Text: doc.Text}.Source(doc.Access, head, "")
		d := ledger.ApprovalDecision{ApprovalRequestID: fmt.Sprintf("uncounted_%d", i+1), Decision: ledger.Approve, Source: source}
		if err := answer(log, m.at, doc.Command, d); err != nil {
			return nil, err
		}
	}
	return log, nil
}

// answer adds a decision that a command says to a log, and the request that it answers.
func answer(log *ledger.Log, at time.Time, c approval.Command, d ledger.ApprovalDecision) error {
	d.TransactionID, d.Fingerprint, d.Reason = log.Meta().TransactionID, c.Fingerprint, c.Reason
	if c.Signed && d.Decision == ledger.Approve {
		d.Source.Signature = &ledger.Signature{KeyFingerprint: d.ApprovalRequestID}
	}
	request := ledger.ApprovalRequest{TransactionID: d.TransactionID, ApprovalRequestID: d.ApprovalRequestID, Kind: c.RequestKind(), Fingerprint: c.Fingerprint}
	return errors.Join(log.Append(at, &request), log.Append(at, &d))
}

// denialInDoubt says why a denial that stopped the transaction might not have been heard by
// another Policy, "" if it would have been.
func (m *moment) denialInDoubt(p policy.Policy) string {
	if m.policy.Approvals.Permission.AtLeast(p.Approvals.Permission) {
		return ""
	}
	heard := false
	doubt := "whether who denied it had " + string(p.Approvals.Permission) + " permission"
	for _, d := range ledger.Of[*ledger.ApprovalDecision](m.before) {
		if d.Decision == ledger.Deny {
			heard = heard || !approval.IsForge(d.Source) || approval.Refused(p, approval.Access{Permission: d.Source.Permission}) == ""
			doubt = fmt.Sprintf("what had become of it without the denial of %s, who %s", d.Source.Author.Login, approval.Refused(p, approval.Access{Permission: d.Source.Permission}))
		}
	}
	if heard {
		return ""
	}
	return doubt
}

// asksTheSame reports whether a Policy asks of the transaction exactly what the Policy
// in force asked.
func (m *moment) asksTheSame(p policy.Policy) bool {
	proposed := m.before.Transaction().Pointers.Proposal
	asks := func(p policy.Policy) string {
		line, err := canon.Line(struct {
			Approvals policy.Approvals   `json:"approvals"`
			Bots      []string           `json:"bots"`
			Secrets   policy.SecretsMode `json:"secrets"`
			Needs     []policy.Need      `json:"needs"`
			Advised   []policy.Rule      `json:"advised"` // which are met by what tools said
		}{p.Approvals, p.Bots, p.Secrets.Mode, p.Needs(proposed.TargetFiles, proposed.ContainsSecrets), slices.DeleteFunc(slices.Clone(p.Protected), func(r policy.Rule) bool { return r.Advice == nil })})
		if err != nil {
			panic("explain: encoding what a Policy asks: " + err.Error())
		}
		return string(line)
	}
	return asks(p) == asks(m.policy)
}

// AsRecorded is the verdict that a transaction's record alone gives, with the Policy it
// goes by, for pages that people read: nothing is approved by it. Of a change that was applied
// or merged it is the verdict of then. Of another one it is that of the last event by the Policy that
// was asked by, where who is in a team, whether comments still stand and what has moved since is taken
// for granted, as the record does not tell.
func AsRecorded(r *approval.Record) (approval.Verdict, policy.Policy, approval.PolicyDoc, error) {
	none, dir, log := approval.Verdict{State: approval.Pending}, r.Dir, r.Log
	proposed := log.Transaction().Pointers.Proposal
	if event, ref, done := DecidedAt(dir, log); done {
		v, err := r.Approved(event, ref)
		p, doc, missing := r.Policy(ref)
		if missing != nil {
			err = missing
		}
		return v, p, doc, err
	}
	ref := ledger.PolicyRef{Commit: log.Meta().PolicyCommit}
	if proposed != nil {
		ref.SHA256 = proposed.PolicySHA256
	}
	if asked := ledger.Last[*ledger.ApprovalRequest](log); asked != nil {
		ref = asked.Policy
	}
	p, doc, err := r.Policy(ref)
	if err != nil || proposed == nil {
		return none, p, doc, err
	}
	now, err := log.Time(len(log.Events()) - 1)
	if err != nil {
		return none, p, doc, err
	}
	c, err := r.At(len(log.Events()), now, p)
	if err != nil {
		return none, p, doc, err
	}
	c.Needs, c.Head = approval.Granted(c.Needs), proposed.HeadCommit
	c.Stands = func(d ledger.ApprovalDecision) string {
		return approval.Refused(p, approval.Access{Permission: d.Source.Permission})
	}
	c.Policy.Approvals.SameHead, c.Policy.Approvals.Drift = false, nil
	return c.Decide(), p, doc, nil
}

// DecidedAt is the event that a transaction was decided at, and the Policy that it was decided by:
// of a pull request's own diff the one that its Standing names.
func DecidedAt(dir fs.FS, log *ledger.Log) (event int, ref ledger.PolicyRef, done bool) {
	event, ref, done = log.DecidedAt()
	if tx := log.Transaction(); done && tx.GateOnly() {
		if s, err := approval.LastStanding(dir, log.Payloads()[:event]); err == nil {
			ref = s.Policy
		}
	}
	return event, ref, done
}
