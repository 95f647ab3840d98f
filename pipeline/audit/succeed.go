package audit

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A heir is a transaction that says whose place it took.
type heir struct {
	commit history.ID // the first one that is audited
	age    int
	tx     ledger.Transaction
}

// An ended is a transaction whose place was taken: when, and what it says of
// that.
type ended struct {
	age    int
	tx     ledger.Transaction
	reason string
}

// succession keeps what a transaction says of whose place it took, and of who
// took its own.
func (l *life) succession() {
	tx := l.log.Transaction()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := tx.Pointers.Proposal; p != nil && len(p.Supersedes) > 0 {
		l.heirs = append(l.heirs, heir{l.versions[0].commit, l.versions[0].age, tx})
	}
	if tx.Status == ledger.Superseded && tx.Closed {
		l.superseded[tx.TransactionID] = ended{l.versions[len(l.versions)-1].age, tx, ledger.Last[*ledger.StatusChange](l.log).Reason}
	}
}

// successions is L19: who says whose place it took is entered after that one
// ended, which says the same, and both are proposals of one proposer, of some of
// the same files, for one pull request.
func (a *auditor) successions() {
	for _, h := range a.heirs {
		for _, id := range h.tx.Pointers.Proposal.Supersedes {
			if why := a.usurped(h, id); why != "" {
				name := path.Join(ledger.Dir(h.tx.TransactionID), ledger.EventsFile)
				a.add("L19", h.commit, name, "supersedes %s, which %s", ledger.OneLine(id, 60), why)
			}
		}
	}
}

// usurped says what is wrong with a succession, "" for nothing.
func (a *auditor) usurped(h heir, id string) string {
	if ledger.CheckID(id) != nil {
		return "is no transaction's id"
	}
	old, here := a.superseded[id]
	if !here {
		var ok bool
		if old, ok = a.endedBefore(id, h); !ok {
			return "did not end as superseded"
		}
	}
	p, q := h.tx.Pointers.Proposal, old.tx.Pointers.Proposal
	switch {
	case q == nil || h.tx.GateOnly() || old.tx.GateOnly() || p.PullRequest == 0 || p.PullRequest != q.PullRequest || p.Repository == nil || q.Repository == nil || p.Repository.ID != q.Repository.ID:
		return "is no proposal for the same pull request"
	case h.tx.Proposer.Kind != old.tx.Proposer.Kind || h.tx.Proposer.ID != old.tx.Proposer.ID:
		return "has another proposer"
	case !slices.ContainsFunc(p.TargetFiles, func(file string) bool { return slices.Contains(q.TargetFiles, file) }):
		return "changes none of its files"
	case old.age <= h.age:
		return "ended only after it"
	case !strings.Contains(old.reason, h.tx.TransactionID):
		return "says that another one took its place"
	}
	return ""
}

// endedBefore finds one that ended before what is audited begins. What it says
// was looked at then.
func (a *auditor) endedBefore(id string, h heir) (ended, bool) {
	name := path.Join(ledger.Dir(id), ledger.TransactionFile)
	former, err := a.Former(name)
	if err != nil || len(former) != 1 {
		return ended{}, false
	}
	var tx ledger.Transaction
	for _, e := range former {
		if err := canon.Unmarshal(a.read(h.commit, name, e), &tx); err != nil {
			return ended{}, false
		}
	}
	return ended{h.age + 1, tx, h.tx.TransactionID}, tx.TransactionID == id && tx.Status == ledger.Superseded && tx.Closed
}
