// Package approval decides: what the Policy asks for, what was said, and what
// that adds up to. It is pure; who said what is for the caller to find out.
package approval

import (
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
// BreakGlass tells that somebody broke the glass because the ordinary approvals
// did not suffice: then Needs has break_glass for all that they were needed for.
type Verdict struct {
	State      State    `json:"verdict"`
	Reason     string   `json:"reason"`
	BreakGlass bool     `json:"break_glass,omitempty"`
	Needs      []Need   `json:"needs"`
	Decisions  []Judged `json:"decisions"`
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
