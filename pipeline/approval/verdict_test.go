package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

const txID = "tx_01KE5W5200041061050R3GG28A"

var (
	patchA, patchB = canon.Hex([]byte("A")), canon.Hex([]byte("B"))
	ada            = ledger.Actor{Kind: "user", ID: "1", Login: "Ada"}
	bob            = ledger.Actor{Kind: "user", ID: "2", Login: "Bob"}
)

// said is one decision on patch A, taken locally.
func said(d ledger.Decision, who ledger.Actor) ledger.ApprovalDecision {
	return ledger.ApprovalDecision{
		TransactionID: txID, Decision: d, Fingerprint: "patchset:" + patchA,
		Source: ledger.Source{Kind: "local", Author: who, CreatedAt: "2026-01-05T00:00:00.000Z"},
	}
}

func with(d ledger.ApprovalDecision, edit func(*ledger.ApprovalDecision)) ledger.ApprovalDecision {
	edit(&d)
	return d
}

// logOf is a transaction that proposes patch A and records decisions.
func logOf(t *testing.T, decisions []ledger.ApprovalDecision) *ledger.Log {
	t.Helper()
	log := &ledger.Log{}
	events := []ledger.Payload{
		&ledger.Meta{TransactionID: txID},
		&ledger.TurnStart{TransactionID: txID, TurnID: "turn_1"},
		&ledger.TurnItem{TransactionID: txID, TurnID: "turn_1", Item: ledger.Item{
			ID: "item_1", Type: "fileChange", Metadata: &ledger.Proposal{PatchID: patchA},
		}},
	}
	for i := range decisions {
		id := fmt.Sprintf("req_%d", i+1)
		decisions[i].ApprovalRequestID, decisions[i].TransactionID = id, txID
		events = append(events,
			&ledger.ApprovalRequest{TransactionID: txID, ApprovalRequestID: id, Fingerprint: decisions[i].Fingerprint}, &decisions[i])
	}
	for _, e := range events {
		if err := log.Append(time.Unix(0, 0), e); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// A row is a Policy and what was said under it.
type row struct {
	name     string
	required int
	remote   bool // local decisions do not count
	said     []ledger.ApprovalDecision
	denials  []ledger.Denial
	state    approval.State
	reason   string
	judged   string // what is said of each decision
}

func check(t *testing.T, rows []row) {
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			p := approval.Default()
			p.Approvals.Required, p.Approvals.Local = c.required, !c.remote
			v := approval.Decide(p, logOf(t, c.said), c.denials)
			if v.State != c.state || v.Reason != c.reason {
				t.Errorf("%s (%s), want %s (%s)", v.State, v.Reason, c.state, c.reason)
			}
			checkJudged(t, v.Decisions, c.judged)
			need := v.Needs[0]
			if len(v.Needs) != 1 || need.Kind != approval.KindFileChange || need.Fingerprint != "patchset:"+patchA || need.Required < 1 {
				t.Errorf("needs %v", v.Needs)
			}
		})
	}
}

// checkJudged compares decisions with words such as "+approved -another patch".
func checkJudged(t *testing.T, got []approval.Judged, want string) {
	t.Helper()
	words := strings.Split(strings.NewReplacer(" +", "\n+", " -", "\n-").Replace(want), "\n")
	if want == "" {
		words = nil
	}
	if len(got) != len(words) {
		t.Fatalf("%d decisions judged, want %d: %v", len(got), len(words), got)
	}
	for i, j := range got {
		if j.Counted != (words[i][0] == '+') || !strings.Contains(j.Reason, words[i][1:]) {
			t.Errorf("decision %d: counted %v, %q; want %s", i+1, j.Counted, j.Reason, words[i])
		}
	}
}

type decisions = []ledger.ApprovalDecision

var (
	yes, no    = said(ledger.Approve, ada), said(ledger.Deny, ada)
	otherPatch = func(d *ledger.ApprovalDecision) { d.Fingerprint = "patchset:" + patchB }
	denial     = ledger.Denial{Fingerprint: "patchset:" + patchA, TransactionID: "tx_of_another", Author: bob, Reason: "no"}
)

func TestDecide(t *testing.T) {
	check(t, []row{
		{"nothing said", 1, false, nil, nil, approval.Pending, "0 of 1 approvals", ""},
		{"approved", 1, false, decisions{yes}, nil, approval.Approved, "1 of 1 approvals", "+approved"},
		{"one of two", 2, false, decisions{yes}, nil, approval.Pending, "1 of 2 approvals", "+approved"},
		{"two of two", 2, false, decisions{yes, said(ledger.Approve, bob)}, nil, approval.Approved, "2 of 2 approvals", "+approved +approved"},
		{"more than asked for", 1, false, decisions{yes, said(ledger.Approve, bob)}, nil, approval.Approved, "2 of 1 approvals", "+approved +approved"},
		{"a Policy that asks for none", 0, false, nil, nil, approval.Pending, "0 of 1 approvals", ""},
		{"a Policy that asks for less than none", -1, false, nil, nil, approval.Pending, "0 of 1 approvals", ""},
		{"nobody", 1, false, decisions{said(ledger.Approve, ledger.Actor{Kind: "user", Login: "Ada"})}, nil, approval.Pending, "0 of 1 approvals", "-no author"},
		{"the kind of another need", 1, false, decisions{with(yes, func(d *ledger.ApprovalDecision) { d.Fingerprint = "secret:patchset:" + patchA })}, nil,
			approval.Pending, "0 of 1 approvals", "-another patch"},
		{"local is not allowed", 1, true, decisions{yes}, nil, approval.Pending, "0 of 1 approvals", "-does not allow local"},
		{"elsewhere is allowed", 1, true, decisions{with(yes, func(d *ledger.ApprovalDecision) { d.Source.Kind = "issue_comment" })}, nil,
			approval.Approved, "1 of 1 approvals", "+approved"},
		{"neither", 1, false, decisions{said("perhaps", ada)}, nil, approval.Pending, "0 of 1 approvals", "-neither"},
		{"denied", 1, false, decisions{no}, nil, approval.Denied, "denied by Ada", "+denied"},
		{"with a reason", 1, false, decisions{with(no, func(d *ledger.ApprovalDecision) { d.Reason = "too risky" })}, nil,
			approval.Denied, "denied by Ada: too risky", "+denied"},
		{"another patch is denied", 1, false, decisions{with(no, otherPatch), yes}, nil, approval.Approved, "1 of 1 approvals", "-another patch +approved"},
	})
}

// TestT03DenialsStick: a denial wins over any number of approvals, before or
// after it, here or in another transaction.
func TestT03DenialsStick(t *testing.T) {
	check(t, []row{
		{"approvals, then a denial", 1, false, decisions{yes, said(ledger.Approve, bob), no}, nil, approval.Denied, "denied by Ada", "+approved +approved +denied"},
		{"a denial, then approvals", 1, false, decisions{said(ledger.Deny, bob), yes, said(ledger.Approve, bob)}, nil,
			approval.Denied, "denied by Bob", "+denied +approved +approved"},
		{"the first denial is told", 1, false, decisions{no, said(ledger.Deny, bob)}, nil, approval.Denied, "denied by Ada", "+denied +denied"},
		{"a denial where local is not allowed", 1, true, decisions{no}, nil, approval.Denied, "denied by Ada", "+denied"},
		{"denied in another transaction", 1, false, nil, []ledger.Denial{denial}, approval.Denied, "denied by Bob: no", ""},
		{"denied elsewhere, approved here", 1, false, decisions{yes}, []ledger.Denial{denial}, approval.Denied, "denied by Bob: no", "+approved"},
	})
}

func TestT06ApprovalOfAnotherPatch(t *testing.T) {
	check(t, []row{
		{"another patch", 1, false, decisions{with(yes, otherPatch)}, nil, approval.Pending, "0 of 1 approvals", "-another patch"},
	})
}

func TestT07InexactFingerprint(t *testing.T) {
	check(t, []row{
		{"a prefix", 1, false, decisions{with(yes, func(d *ledger.ApprovalDecision) { d.Fingerprint = "patchset:" + patchA[:12] })}, nil,
			approval.Pending, "0 of 1 approvals", "-another patch"},
		{"upper case", 1, false, decisions{with(yes, func(d *ledger.ApprovalDecision) { d.Fingerprint = "patchset:" + strings.ToUpper(patchA) })}, nil,
			approval.Pending, "0 of 1 approvals", "-another patch"},
	})
}

// TestT11SameName: the id is the person, the login is not.
func TestT11SameName(t *testing.T) {
	check(t, []row{
		{"one person, renamed", 2, false, decisions{yes, said(ledger.Approve, ledger.Actor{Kind: "user", ID: "1", Login: "Bob"})}, nil,
			approval.Pending, "1 of 2 approvals", "+approved -counted already"},
		{"another person of that name", 2, false, decisions{yes, said(ledger.Approve, ledger.Actor{Kind: "user", ID: "2", Login: "Ada"})}, nil,
			approval.Approved, "2 of 2 approvals", "+approved +approved"},
	})
}

func TestT12OneVoteEach(t *testing.T) {
	check(t, []row{
		{"one person twice", 2, false, decisions{yes, yes}, nil, approval.Pending, "1 of 2 approvals", "+approved -counted already"},
	})
}

func TestJudgedTellsWhoAndWhere(t *testing.T) {
	v := approval.Decide(approval.Default(), logOf(t, []ledger.ApprovalDecision{said(ledger.Approve, ada)}), nil)
	want := approval.Judged{
		Decision: ledger.Approve, Fingerprint: "patchset:" + patchA, Author: ada, Source: "local",
		CreatedAt: "2026-01-05T00:00:00.000Z", Counted: true, Reason: "approved",
	}
	if v.Decisions[0] != want {
		t.Errorf("%+v", v.Decisions[0])
	}
}

// TestPolicySum pins the hash: it is recorded, and must not drift.
func TestPolicySum(t *testing.T) {
	want := canon.Sum([]byte(`{"approvals":{"local":true,"required":1},"limits":{"bytes":5242880,"files":500},"version":1}` + "\n"))
	if got := approval.Default().Sum(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	other := approval.Default()
	other.Approvals.Required = 2
	if other.Sum() == want {
		t.Error("two Policies, one hash")
	}
}
