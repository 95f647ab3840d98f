package audit

import (
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A proposalAt is somebody's proposal of a patch in a transaction, and the age of the commit that records it.
type proposalAt struct {
	id  string
	by  ledger.Actor
	age int
}

// An approvalAt is an approval whose author the record before it does not name as one who proposed the patch.
type approvalAt struct {
	commit    history.ID
	age       int
	id, patch string
	by        ledger.Actor
}

// proposers keeps who proposed the transaction's patch, and who approved it, in the events from one to before another
// that a version brought; -1 is what was there before the audit begins.
func (l *life) proposers(version, from, to int) {
	v := &l.versions[max(version, 0)]
	age := v.age
	if version < 0 {
		age = math.MaxInt
	}
	patch := l.log.Transaction().PatchID()
	others := ledger.Proposers(directory{l.files, l.content}, l.log)
	named := []ledger.Actor{l.log.Meta().Proposer}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.log.Payloads()[:to] {
		switch p := p.(type) {
		case *ledger.Meta:
			if i >= from {
				l.proposals[patch] = append(l.proposals[patch], proposalAt{l.id, p.Proposer, age})
			}
		case *ledger.ArtifactStored:
			named = append(named, others[p.Path]...)
			if i < from || p.Kind != ledger.KindAgain {
				continue
			}
			for _, who := range others[p.Path] {
				l.proposals[patch] = append(l.proposals[patch], proposalAt{l.id, who, age})
			}
		case *ledger.ApprovalDecision:
			by := p.Source.Author
			if i >= from && version >= 0 && p.Decision == ledger.Approve && by.ID != "" && !l.eitherWay(p) && !slices.ContainsFunc(named, func(a ledger.Actor) bool { return a.ID == by.ID }) {
				l.approvals = append(l.approvals, approvalAt{v.commit, age, l.id, patch, by})
			}
		}
	}
}

// eitherWay reports whether an approval counts whoever proposed the change, and shows nobody's independence: one in a
// shell, of what was proposed in a shell, but for a secret. Somebody who proposes a patch in one clone and approves it in
// another, which does not know yet, would else never join the two.
func (l *life) eitherWay(d *ledger.ApprovalDecision) bool {
	local := d.Source.Kind == "local" || d.Source.Kind == "rpc"
	return local && strings.HasPrefix(l.log.Meta().Proposer.ID, "local:") && d.Fingerprint == policy.Fingerprint(policy.KindFileChange, l.log.Transaction().PatchID())
}

// ownApprovals is L24 of a whole ledger: nobody approves what they had proposed in another transaction without the record
// naming them. Which came first is the order of the commits.
func (a *auditor) ownApprovals() {
	before := map[string][]proposalAt{} // by patch: those that ended before what is audited begins
	for _, d := range a.approvals {
		if _, known := before[d.patch]; !known {
			before[d.patch] = a.proposedBefore(d)
		}
		for _, p := range slices.Concat(a.proposals[d.patch], before[d.patch]) {
			if p.id != d.id && p.by.ID == d.by.ID && p.age > d.age {
				a.add("L24", d.commit, path.Join(ledger.Dir(d.id), ledger.EventsFile), "%s approves what they had proposed in %s, which the record does not say", ledger.OneLine(d.by.Login, 60), p.id)
				break
			}
		}
	}
}

// proposedBefore reads the proposals of a patch in transactions to which nothing is added in what is audited.
func (a *auditor) proposedBefore(d approvalAt) (out []proposalAt) {
	listed, err := a.Former(ledger.ProposedDir(d.patch))
	if err != nil {
		a.add("OBJECT", d.commit, ledger.ProposedDir(d.patch), "what was there before cannot be read: %v", err)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		id := strings.TrimSuffix(path.Base(name), ".json")
		if a.transactions[id] != nil || ledger.CheckID(id) != nil {
			continue
		}
		files, err := a.Former(ledger.Dir(id))
		if err != nil {
			a.add("OBJECT", d.commit, ledger.Dir(id), "what was there before cannot be read: %v", err)
			continue
		}
		dir := directory{map[string]history.Entry{}, map[history.ID][]byte{}}
		for name, e := range files {
			if ledger.IsPage(name) {
				continue
			}
			_, name, _ = ledger.Within(name)
			dir.files[name], dir.content[e.ID] = e, a.Read(d.commit, name, e)
		}
		log, err := ledger.ReadLog(dir.content[dir.files[ledger.EventsFile].ID])
		if err != nil {
			continue // an audit of what was before tells
		}
		who, err := ledger.ProposedBy(dir, log)
		if err != nil {
			a.add("L24", d.commit, ledger.Dir(id), "who proposed the patch there cannot be read: %v", err)
		}
		for _, by := range who {
			out = append(out, proposalAt{id, by, math.MaxInt})
		}
	}
	return out
}
