package approval

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// A Case is all that a verdict depends on. Needs is what Policy.Needs says of
// the patch; Log records who said what, and Denials are what the ledger holds
// against the patch.
//
// Now is when the verdict is asked for, and Head the commit that it is about
// (the pull request's head, else the base): max_age and same_head of the Policy
// go by them, and without them no approval counts that these look at. Authors
// are those who wrote the change beside the proposer: in gate-only, the
// committers.
//
// Teams and Owners tell whether somebody is in a team, or owns a path by
// CODEOWNERS. Nil means nobody. An error counts as no, and its text is told.
//
// Stands is asked about each recorded approval of the forge: "" if it is still
// there as it was, else why it counts no more. Nil means that none was looked
// for, and none counts. Denials, and decisions of the command line, stand by
// themselves.
//
// The Policy's withdraw_deny is not decided on yet: a denial is final.
type Case struct {
	Policy      policy.Policy
	Needs       []policy.Need
	Log         *ledger.Log
	Denials     []ledger.Denial
	Now         time.Time
	Head        string
	PullRequest bool
	Authors     []ledger.Actor
	Teams       func(team string, who ledger.Actor) (bool, error)
	Owners      func(path string, who ledger.Actor) (bool, error)
	Stands      func(ledger.ApprovalDecision) string
}

// Decide adds up the decisions of the log. The verdict is approved when every
// need is met. One denial of any of the patch's fingerprints, whoever else
// approved, makes it denied. Each person has one vote for each need, by id.
func (c Case) Decide() Verdict {
	v := Verdict{State: Pending, Decisions: []Judged{}}
	tallies := c.tallies()
	var broken *ledger.ApprovalDecision // the first that breaks the glass
	urgent := c.askedToBreakGlass()
	for _, d := range ledger.Of[*ledger.ApprovalDecision](c.Log) {
		j := newJudged(*d)
		if urgent[d.ApprovalRequestID] && d.Decision == ledger.Approve {
			j.Counted, j.Reason = c.breakGlass(*d, tallies)
			if j.Counted && broken == nil {
				broken = d
			}
		} else {
			j.Counted, j.Reason = c.count(*d, tallies)
		}
		v.Decisions = append(v.Decisions, j)
		if j.Counted && d.Decision == ledger.Deny {
			v.deny(d.Source.Author, d.Reason)
		}
	}
	for _, d := range c.Denials {
		v.deny(d.Author, d.Reason)
	}
	v.addUp(tallies, broken)
	return v
}

func newJudged(d ledger.ApprovalDecision) Judged {
	return Judged{
		Decision: d.Decision, Fingerprint: d.Fingerprint, Author: d.Source.Author,
		Source: d.Source.Kind, CreatedAt: d.Source.CreatedAt,
	}
}

// tallies has one for each need. A patch always needs the approval of the
// change itself, also where the caller forgot.
func (c Case) tallies() []*tally {
	needs := c.Needs
	if !slices.ContainsFunc(needs, func(n policy.Need) bool { return n.Kind == policy.KindFileChange }) {
		needs = slices.Concat(c.Policy.Needs(nil, false), needs)
	}
	patchID := c.Log.Transaction().PatchID()
	out := make([]*tally, len(needs))
	for i, n := range needs {
		out[i] = newTally(n, policy.Fingerprint(n.Kind, patchID))
	}
	return out
}

// count judges one decision, adds it to the tallies that it is for, and says
// whether it counted, and why.
func (c Case) count(d ledger.ApprovalDecision, tallies []*tally) (bool, string) {
	switch {
	case !slices.Contains(policy.Fingerprints(c.Log.Transaction().PatchID()), d.Fingerprint):
		return false, "names another patch"
	case d.Decision == ledger.Deny:
		return true, "denied"
	case d.Decision != ledger.Approve:
		return false, "is neither an approval nor a denial"
	}
	var asked []*tally
	for _, t := range tallies {
		if t.fingerprint == d.Fingerprint {
			asked = append(asked, t)
		}
	}
	if len(asked) == 0 {
		return false, "is not asked for"
	}
	if why := c.refuse(d); why != "" {
		return false, why
	}
	return c.vote(d.Source, asked)
}

// vote adds a vote to each of the tallies that takes it. The reason is why the
// first one did not, if none did.
func (c Case) vote(s ledger.Source, asked []*tally) (bool, string) {
	counted, reason := false, ""
	for _, t := range asked {
		why := c.refuseFor(t.need, s)
		if why == "" {
			why = t.vote(c, s.Author)
		}
		counted = counted || why == ""
		if reason == "" {
			reason = why
		}
	}
	if counted {
		return true, "approved"
	}
	return false, reason
}

// addUp turns tallies into needs, the state and its reason. Where they are not
// met, a broken glass stands in for all but those of a secret.
func (v *Verdict) addUp(tallies []*tally, broken *ledger.ApprovalDecision) {
	var parts []string
	if broken != nil && slices.ContainsFunc(tallies, (*tally).needsGlass) {
		v.BreakGlass = true
		v.Needs = []Need{{policy.KindBreakGlass, broken.Fingerprint, 1, 1}}
		parts = []string{"break-glass by " + broken.Source.Author.Login + ": " + broken.Reason}
		tallies = slices.DeleteFunc(slices.Clone(tallies), (*tally).coveredByGlass)
	}
	met := true
	for _, t := range tallies {
		n := t.sum()
		v.Needs = append(v.Needs, n)
		met = met && n.Approved >= n.Required
		parts = append(parts, t.text(n))
	}
	if v.State == Denied {
		return
	}
	v.Reason = strings.Join(parts, "; ")
	if met {
		v.State = Approved
	}
}

// A Request is one approval that is still to be asked for.
type Request struct {
	Kind        string
	Fingerprint string
}

// Missing lists an approval that is missing once for each person who is to be
// asked, in the order of the needs; nothing unless the verdict is pending.
// Needs of one fingerprint are asked for together, as one person's vote may
// count for all of them; where it did not, the next verdict asks again.
func (v Verdict) Missing() []Request {
	if v.State != Pending {
		return nil
	}
	missing := map[Request]int{}
	var order []Request
	for _, n := range v.Needs {
		q := Request{n.Kind, n.Fingerprint}
		if _, known := missing[q]; !known {
			order = append(order, q)
		}
		missing[q] = max(missing[q], n.Required-n.Approved)
	}
	var out []Request
	for _, q := range order {
		out = append(out, slices.Repeat([]Request{q}, missing[q])...)
	}
	return out
}
