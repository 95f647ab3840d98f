package approval

import (
	"slices"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// askedToBreakGlass has the requests, by id, whose answer breaks the glass: in an
// emergency one of those whom the Policy lists approves alone, with a reason.
func (c Case) askedToBreakGlass() map[string]bool {
	out := map[string]bool{}
	for _, q := range ledger.Of[*ledger.ApprovalRequest](c.Log) {
		if q.Kind == policy.KindBreakGlass {
			out[q.ApprovalRequestID] = true
		}
	}
	return out
}

// breakGlass judges an approval that is to break the glass. It is nobody's vote
// for anything else, and the proposer's own as well, unless there is a secret.
func (c Case) breakGlass(d ledger.ApprovalDecision, tallies []*tally) (bool, string) {
	who := d.Source.Author
	secret := slices.ContainsFunc(tallies, func(t *tally) bool { return t.need.Kind == policy.KindSecret })
	switch {
	case d.Fingerprint != policy.Fingerprint(policy.KindBreakGlass, c.Log.Transaction().PatchID()):
		return false, "names another patch"
	case d.Reason == "":
		return false, "breaks the glass without a reason"
	case !c.Policy.BreaksGlass(who.ID, who.Login):
		return false, "the Policy does not list its author under break_glass"
	case secret && c.wrote(who):
		return false, "its author is the proposer, who cannot break the glass for a secret"
	}
	if why := c.refuse(d); why != "" {
		return false, why
	}
	return true, "approved by breaking the glass"
}

// coveredByGlass reports whether a broken glass stands in for a need.
func (t *tally) coveredByGlass() bool { return t.need.Kind != policy.KindSecret }

// needsGlass reports whether a need that a broken glass stands in for is not met.
func (t *tally) needsGlass() bool {
	n := t.sum()
	return t.coveredByGlass() && n.Approved < n.Required
}
