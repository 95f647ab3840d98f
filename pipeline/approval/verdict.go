package approval

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A State is what all decisions add up to.
type State string

// The states of a Verdict.
const (
	Approved State = "approved"
	Pending  State = "pending"
	Denied   State = "denied"
)

// KindFileChange is the approval that every change needs.
const KindFileChange = "fileChange"

// A Need is one fingerprint that humans must approve.
type Need struct {
	Kind        string `json:"kind"`
	Fingerprint string `json:"fingerprint"`
	Required    int    `json:"required"`
	Approved    int    `json:"approved"`
}

// A Judged decision says whether it counted, and why.
type Judged struct {
	Decision    ledger.Decision `json:"decision"`
	Fingerprint string          `json:"fingerprint"`
	Author      ledger.Actor    `json:"author"`
	Source      string          `json:"source"`
	CreatedAt   string          `json:"created_at"`
	Counted     bool            `json:"counted"`
	Reason      string          `json:"reason"`
}

// A Verdict is the sum of all decisions under a Policy, with the reason of each.
type Verdict struct {
	State     State    `json:"verdict"`
	Reason    string   `json:"reason"`
	Needs     []Need   `json:"needs"`
	Decisions []Judged `json:"decisions"`
}

// Decide adds up the decisions that a transaction's log records, and the
// denials that the ledger holds against its patch. A denial wins over any
// number of approvals; each person has one vote, by id.
func Decide(p Policy, log *ledger.Log, denials []ledger.Denial) Verdict {
	need := Need{
		Kind:        KindFileChange,
		Fingerprint: "patchset:" + log.Transaction().PatchID(),
		Required:    max(1, p.Approvals.Required),
	}
	v := Verdict{State: Pending, Decisions: []Judged{}}
	voted := map[string]bool{}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		j := judge(p, *d, need.Fingerprint, voted)
		v.Decisions = append(v.Decisions, j)
		if !j.Counted {
			continue
		}
		if d.Decision == ledger.Deny {
			v.deny(d.Source.Author, d.Reason)
			continue
		}
		voted[d.Source.Author.ID] = true
		need.Approved++
	}
	for _, d := range denials {
		v.deny(d.Author, d.Reason)
	}
	v.Needs = []Need{need}
	v.settle(need)
	return v
}

func judge(p Policy, d ledger.ApprovalDecision, fingerprint string, voted map[string]bool) Judged {
	j := Judged{
		Decision: d.Decision, Fingerprint: d.Fingerprint, Author: d.Source.Author,
		Source: d.Source.Kind, CreatedAt: d.Source.CreatedAt,
	}
	switch {
	case d.Fingerprint != fingerprint:
		j.Reason = "names another patch"
	case d.Decision == ledger.Deny:
		j.Counted, j.Reason = true, "denied"
	case d.Decision != ledger.Approve:
		j.Reason = "is neither an approval nor a denial"
	case d.Source.Kind == "local" && !p.Approvals.Local:
		j.Reason = "the Policy does not allow local decisions"
	case d.Source.Author.ID == "":
		j.Reason = "has no author"
	case voted[d.Source.Author.ID]:
		j.Reason = "this person's vote is counted already"
	default:
		j.Counted, j.Reason = true, "approved"
	}
	return j
}

func (v *Verdict) deny(by ledger.Actor, reason string) {
	if v.State == Denied {
		return
	}
	v.State, v.Reason = Denied, "denied by "+by.Login
	if reason != "" {
		v.Reason += ": " + reason
	}
}

func (v *Verdict) settle(need Need) {
	switch {
	case v.State == Denied:
	case need.Approved >= need.Required:
		v.State, v.Reason = Approved, fmt.Sprintf("%d of %d approvals", need.Approved, need.Required)
	default:
		v.Reason = fmt.Sprintf("%d of %d approvals", need.Approved, need.Required)
	}
}
