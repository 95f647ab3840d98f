package approval_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// anyPolicy leans to what lets some cases be approved.
func anyPolicy(r *rand.Rand) policy.Policy {
	p := policy.Default()
	p.Approvals = policy.Approvals{
		Required: pick(r, 1, 1, 2), Permission: pick(r, policy.CanRead, policy.CanTriage, policy.CanWrite, policy.CanAdmin),
		AllowAuthor: r.IntN(2) == 0, SameHead: r.IntN(4) == 0, MaxAge: pick(r, 0, 0, policy.Duration(2*time.Hour), policy.Duration(10*time.Hour)),
		Local: pick(r, policy.LocalNever, policy.LocalAlone, policy.LocalAlways),
	}
	if r.IntN(2) == 0 {
		p.Approvals.BreakGlass = pick(r, []string{"ada"}, []string{"ada", "2"}, []string{"eve", "app"})
	}
	p.Secrets.Mode = pick(r, policy.RequireApproval, policy.RequireApproval, policy.Refuse)
	if r.IntN(4) == 0 {
		p.Bots = []string{pick(r, "ada", "2", "eve")}
	}
	for range r.IntN(3) {
		rule := policy.Rule{Paths: []string{pick(r, "a", "b", "*")}, Required: pick(r, 1, 1, 2)}
		switch r.IntN(4) {
		case 0:
			rule.Users = []string{pick(r, "ada", "2", "eve")}
		case 1:
			rule.Teams = []string{"acme/sec"}
		case 2:
			rule.Owners = true
		}
		p.Protected = append(p.Protected, rule)
	}
	return p
}

// anyWords is what people say, mostly to the point.
func anyWords(r *rand.Rand) string {
	var lines []string
	for range r.IntN(10) {
		line := pick(r, "ada", "bob", "eve", "2", "ada", "bob", "agent", "renamed") + " " + pick(r, "", "", "secret", "protected") + " " +
			pick(r, "perm=admin", "perm=write", "perm=read", "local", "rpc", "source=review") + " " + pick(r, "at=1h", "at=5h", "at=50h") + " " + pick(r, "", "", "", "on=old")
		switch r.IntN(40) {
		case 0:
			line += " deny"
		case 1, 2, 3, 4, 5, 6:
			line += " glass=" + pick(r, "down", "down", "")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ";")
}

// anyCase also returns what was said and a function that makes the case of
// other words under another Policy.
func anyCase(t *testing.T, r *rand.Rand) (policy.Policy, []ledger.ApprovalDecision, func(policy.Policy, []ledger.ApprovalDecision) approval.Case) {
	paths := pick(r, "x", "x", "a", "ada/b", "!x", "!a CLAUDE.md", "ada/b bob/b", "CLAUDE.md")
	proposer, pr := people[pick(r, "agent", "ada", "eve")], r.IntN(2) == 0
	return anyPolicy(r), spoken(t, anyWords(r)), func(p policy.Policy, said []ledger.ApprovalDecision) approval.Case {
		c := newCase(t, p, paths, "")
		c.Log, c.PullRequest = record(t, proposer, said), pr
		c.Stands = func(d ledger.ApprovalDecision) string {
			if d.Source.Kind == "review" && d.Source.Commit == "old" {
				return "its comment is gone"
			}
			return ""
		}
		return c
	}
}

// TestProperties, of random cases: adding a denial never approves, removing an
// approval never approves, a Tightened Policy never approves what the Policy or
// its base would not, and what is missing is missing only while a verdict is pending.
func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	states := map[approval.State]int{}
	tightened, broken := 0, 0
	n := 150
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		n = 1500
	}
	for range n {
		p, said, of := anyCase(t, r)
		v := of(p, said).Decide()
		states[v.State]++
		checkVerdict(t, v)
		if v.BreakGlass && v.State == approval.Approved {
			broken++
		}

		deny := spoken(t, pick(r, "ada", "eve")+" "+pick(r, "deny", "deny secret", "deny protected"))
		at := r.IntN(len(said) + 1)
		if got := of(p, slices.Insert(slices.Clone(said), at, deny...)).Decide(); got.State != approval.Denied {
			t.Fatalf("%s after a denial", got.State)
		}
		if at < len(said) && said[at].Decision == ledger.Approve && v.State != approval.Approved {
			if got := of(p, slices.Delete(slices.Clone(said), at, at+1)).Decide(); got.State == approval.Approved {
				t.Fatalf("%s (%s) without an approval", got.State, got.Reason)
			}
		}
		base := anyPolicy(r)
		if bare := of(p, said); v.State == approval.Approved {
			bare.Stands = func(ledger.ApprovalDecision) string { return "its comment is gone" }
			if got := bare.Decide(); got.State == approval.Approved && slices.ContainsFunc(got.Decisions, func(j approval.Judged) bool {
				return j.Counted && j.Source != "local" && j.Source != "rpc"
			}) {
				t.Fatalf("%s by what does not stand: %+v", got.State, got.Decisions)
			}
		}
		got := of(policy.Tighten(p, base), said).Decide()
		if got.State == approval.Approved && v.State != approval.Approved {
			t.Fatalf("%s, base %s: %s (%s), tightened %s (%s)", p.JSON(), base.JSON(), v.State, v.Reason, got.State, got.Reason)
		}
		// Nor what the base's own Policy would not approve.
		if alone := of(base, said).Decide(); got.State == approval.Approved && alone.State != approval.Approved {
			t.Fatalf("%s, base %s: the base alone %s (%s), tightened %s", p.JSON(), base.JSON(), alone.State, alone.Reason, got.State)
		}
		if got.State == approval.Approved {
			tightened++
		}
	}
	if states[approval.Approved] < n/20 || states[approval.Pending] < n/20 || states[approval.Denied] < n/40 || tightened < n/80 || broken < n/200 {
		t.Errorf("the cases are too much alike: %v, %d approved when tightened, %d by breaking the glass", states, tightened, broken)
	}
}

// checkVerdict: the parts of a verdict agree.
func checkVerdict(t *testing.T, v approval.Verdict) {
	t.Helper()
	met := true
	for _, n := range v.Needs {
		met = met && n.Approved >= n.Required
	}
	if met != (v.State == approval.Approved) && v.State != approval.Denied {
		t.Fatalf("%+v", v)
	}
	if (len(plain.Missing(v)) > 0) != (v.State == approval.Pending) {
		t.Fatalf("%s, missing %v", v.State, plain.Missing(v))
	}
	for _, j := range v.Decisions {
		if j.Reason == "" || j.Counted != (j.Reason == "approved" || j.Reason == "approved by breaking the glass" || j.Reason == "denied") {
			t.Fatalf("%+v", j)
		}
	}
}
