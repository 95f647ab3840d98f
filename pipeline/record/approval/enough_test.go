package approval_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// TestT12T46L17HoldsL3: whatever the Policy, a verdict that is approved has what E-37 of the specification counts in the events alone, so
// who decides again by the recorded Policy (L17) need not count as well: nobody denied, and as many people as apply/start says
// approved each fingerprint, none of them the proposer where there are secrets; and a broken glass stands beside these alone.
func TestT12T46L17HoldsL3(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	n, approved, secrets, broken := 3000, 0, 0, 0
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		n = 15000
	}
	for range n {
		p, said, of := anyCase(t, r)
		c := of(p, said)
		v := c.Decide()
		if v.State != approval.Approved {
			continue
		}
		approved++
		proposed := *c.Log.Transaction().Pointers.Proposal
		if proposed.ContainsSecrets = slices.ContainsFunc(c.Needs, func(n policy.Need) bool { return n.Kind == policy.KindSecret }); proposed.ContainsSecrets {
			secrets++
		}
		if v.BreakGlass {
			broken++
		}
		if !enough(v.Approvals(), proposed, c.Log) {
			t.Fatalf("%s approves %+v by %+v", p.JSON(), v.Approvals(), said)
		}
	}
	if approved < n/20 || secrets < n/200 || broken < n/200 {
		t.Errorf("the cases are too much alike: of %d approved %d have secrets, and for %d the glass was broken", approved, secrets, broken)
	}
}

// enough is E-37, of what apply/start says of approvals.
func enough(approvals []ledger.Approved, proposed ledger.Proposal, log *ledger.Log) bool {
	approvers := map[string]map[string]bool{}
	what := func(kind, fingerprint string) string {
		if kind == policy.KindBreakGlass {
			return kind + " " + fingerprint
		}
		return fingerprint
	}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		if d.Decision != ledger.Approve {
			return false
		}
		kind := log.Request(d.ApprovalRequestID).Kind
		if kind == policy.KindBreakGlass && d.Reason == "" {
			continue
		}
		if approvers[what(kind, d.Fingerprint)] == nil {
			approvers[what(kind, d.Fingerprint)] = map[string]bool{}
		}
		approvers[what(kind, d.Fingerprint)][d.Source.Author.ID] = true
	}
	patch, secret := "patchset:"+proposed.PatchID, "secret:patchset:"+proposed.PatchID
	asked := map[string]bool{}
	for _, a := range approvals {
		by := approvers[what(a.Kind, a.Fingerprint)]
		n := len(by)
		if proposer := log.Meta().Proposer.ID; by[proposer] && (a.Fingerprint == secret || a.Kind == policy.KindBreakGlass && proposed.ContainsSecrets) {
			n--
		}
		if ledger.FingerprintPatch(a.Fingerprint) != proposed.PatchID || n < max(1, a.Required) {
			return false
		}
		asked[what(a.Kind, a.Fingerprint)] = true
	}
	if proposed.ContainsSecrets && !asked[secret] {
		return false
	}
	delete(asked, secret)
	if asked[what(policy.KindBreakGlass, patch)] {
		return len(asked) == 1
	}
	return asked[patch]
}
