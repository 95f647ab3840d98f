package replay

import (
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

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
