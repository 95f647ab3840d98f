package approval

import (
	"bytes"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
)

// AsRecorded is the verdict that a transaction's record alone gives, with the Policy it
// goes by, for pages that people read: nothing is approved by it. Of a change that was applied
// or merged it is the verdict of then. Of another one it is that of the last event by the Policy that
// was asked by, where who is in a team, whether comments still stand and what has moved since is taken
// for granted, as the record does not tell.
func (ps *Policies) AsRecorded(dir fs.FS, log *ledger.Log) (Verdict, policy.Policy, PolicyDoc, error) {
	event, ref, done := log.DecidedAt()
	proposed := log.Transaction().Pointers.Proposal
	if done {
		end, ref := decidedAt(dir, log, event, ref)
		v, err := ps.decideAgain(&signatures{dir: dir, log: log}, event, end, ref)
		p, doc, missing := ps.Recorded(dir, log, ref)
		if missing != nil {
			err = missing
		}
		return v, p, doc, err
	}
	ref = ledger.PolicyRef{Commit: log.Meta().PolicyCommit}
	if proposed != nil {
		ref.SHA256 = proposed.PolicySHA256
	}
	if asked := ledger.Last[*ledger.ApprovalRequest](log); asked != nil {
		ref = asked.Policy
	}
	p, doc, err := ps.Recorded(dir, log, ref)
	if err != nil || proposed == nil {
		return Verdict{State: Pending}, p, doc, err
	}
	now, err := log.Time(len(log.Events()) - 1)
	if err != nil {
		return Verdict{State: Pending}, p, doc, err
	}
	c := Case{
		Policy: p, Needs: granted(p.Needs(proposed.TargetFiles, proposed.ContainsSecrets)), Log: log, Now: now, Authors: proposed.Authors, Party: ReadParty(dir, log),
		Head: proposed.HeadCommit, PullRequest: proposed.PullRequest > 0, Signed: SignedAsRecorded(dir, log, p),
		People: people(log, sshsig.Allowed{}, func(name string) ([]byte, error) { return fs.ReadFile(dir, name) }),
		Stands: func(d ledger.ApprovalDecision) string { return Refused(p, Access{Permission: d.Source.Permission}) },
	}
	c.Policy.Approvals.SameHead, c.Policy.Approvals.Drift = false, nil
	return c.Decide(), p, doc, nil
}

// decidedAt is where an event begins in a log's bytes, and the Policy that it was decided by:
// of a pull request's own diff the one that its Standing names.
func decidedAt(dir fs.FS, log *ledger.Log, event int, ref ledger.PolicyRef) (end int, by ledger.PolicyRef) {
	for range event {
		end += bytes.IndexByte(log.Bytes()[end:], '\n') + 1
	}
	if tx := log.Transaction(); tx.GateOnly() {
		if s, err := lastStanding(dir, log.Payloads()[:event]); err == nil {
			ref = s.Policy
		}
	}
	return end, ref
}
