// Package approval decides: what the Policy asks for, what was said, and what
// that adds up to. It is pure; who said what, keys and the time come from the caller.
//
// People may sign a decision with a key of their own, so that nobody who merely holds
// their account or their shell can make it. What is signed is a SignedDecision, in the namespace of Namespace, as
// `ssh-keygen -Y sign` signs a file (OpenSSH's PROTOCOL.sshsig). Its bytes are
// canonical JSON (RFC 8785) and one LF:
//
//	{"base_commit":"…","decided_at":"2026-01-05T12:00:00Z","decision":"approve","fingerprints":["patchset:…"],"policy":{"commit":"…","sha256":"sha256:…"},"proposers":[{"id":"41898282","kind":"bot","login":"github-actions[bot]"}],"pull_request":12,"reason":"","repository":{"id":"1296269","name":"acme/shop"},"requested_by":[{"actor":{"id":"100","kind":"user","login":"bob"},"source":"actions.sender"}],"schema":"countersign/decision/2","shown":"sha256:…","transaction_id":"tx_…"}
//
// docs/decisions.md has each member.
package approval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
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
	Signed      bool   `json:"signed,omitempty"` // only signed approvals count

	Of policy.Need `json:"-"` // what the Policy asks for: its paths, and whom it names
	By []string    `json:"-"` // the accounts whose approval counted for it, by id

	Waiting []string `json:"-"` // where the code owners of Of.Paths are asked: those that lack approvals
}

// String says how far a need is met.
func (n Need) String() string {
	signed := ""
	if n.Signed {
		signed = " signed"
	}
	if n.Kind == policy.KindFileChange {
		return fmt.Sprintf("%d of %d%s approvals", n.Approved, n.Required, signed)
	}
	who := ""
	if n.Of.Names() {
		who = " by " + n.Of.People()
	}
	return fmt.Sprintf("%s%s: %d of %d%s", n.Kind, who, n.Approved, n.Required, signed)
}

// A Judged decision says whether it counted, and why.
type Judged struct {
	Decision    ledger.Decision `json:"decision"`
	Fingerprint string          `json:"fingerprint"`
	Author      ledger.Actor    `json:"author"`
	Source      string          `json:"source"`
	SignedBy    string          `json:"signed_by,omitempty"` // the fingerprint of the key
	CreatedAt   string          `json:"created_at"`
	Recorded    bool            `json:"recorded,omitempty"` // in the ledger: it counted when it was read
	Counted     bool            `json:"counted"`
	Reason      string          `json:"reason"`
	Said        string          `json:"said,omitempty"`      // the reason that its author gave
	Asked       bool            `json:"requester,omitempty"` // its author had asked for the change
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
	Drift      *Drift   `json:"drift,omitempty"` // for people: of the oldest approval that counts, or would but for it
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

// Approvals are what a verdict rests on, as apply/start records it.
func (v Verdict) Approvals() []ledger.Approved {
	var out []ledger.Approved
	for _, n := range v.Needs {
		out = append(out, ledger.Approved{Kind: n.Kind, Fingerprint: n.Fingerprint, Required: n.Required})
	}
	return out
}

// A Request is one approval that is still to be asked for.
type Request struct {
	Kind        string
	Fingerprint string
}

// A Case is all that a verdict depends on. Needs is what Policy.Needs says of
// the patch; Log records who said what, and Denials are what the ledger holds
// against the patch.
//
// Now is when the verdict is asked for, and Head the commit that it is about
// (the pull request's head, else the base): max_age and same_head of the Policy
// go by them, and without them no approval counts that these look at. Authors
// are those who wrote the change beside the proposer: in gate-only, the
// committers. Party are those whom the log's artifacts name who proposed the patch as well, here or in another
// transaction, or asked for it.
//
// Teams and Owners tell whether somebody is in a team, or owns a path by
// CODEOWNERS. Nil means nobody. An error counts as no, and its text is told.
//
// Stands is asked about each recorded approval of the forge: "" if it is still
// there as it was, else why it counts no more. Nil means that none was looked
// for, and none counts. Denials, and decisions of the command line, stand by
// themselves.
//
// Signed verifies the signature of an approval that has one, and tells when it was
// made. Nil means that nobody can, and no approval with a signature counts.
//
// People returns all names that the lists of keys have for whoever has one of some: the
// logins, e-mail addresses and keys of one person, who has one vote. Nil means that
// there is no list.
//
// Drift says how far the base has moved since a commit. If it is nil, nobody looked, and no
// approval counts where the Policy bounds drift.
//
// Passes says why an approval is passed over, "" if it is not. Nil passes over none.
type Case struct {
	Policy      policy.Policy
	Needs       []policy.Need
	Log         *ledger.Log
	Denials     []ledger.Denial
	Now         time.Time
	Head        string
	PullRequest bool
	Authors     []ledger.Actor
	Party
	Teams  func(team string, who ledger.Actor) (bool, error)
	Owners func(path string, who ledger.Actor) (bool, error)
	Stands func(ledger.ApprovalDecision) string
	Signed func(ledger.ApprovalDecision) (time.Time, error)
	People func(names ...string) []string
	Drift  func(from string) Drift
	Passes func(ledger.ApprovalDecision) string

	untold    bool           // somebody proposed it, first, again or elsewhere, and nobody knows who
	unasked   bool           // the same of who asked for it
	asked     []ledger.Actor // who asked for it
	elsewhere []ledger.Actor // who had proposed it in another transaction
}

// Decide adds up the decisions of the log. The verdict is approved when every
// need is met. One denial of any of the patch's fingerprints, whoever else
// approved, makes it denied. Each person has one vote for each need, by id and by
// all that the lists of keys have for them.
func (c Case) Decide() Verdict {
	v := Verdict{State: Pending, Decisions: []Judged{}}
	tallies := c.tallies()
	c.untold = c.Log.Transaction().Proposer.Redacted()
	c.ask(c.Log.Transaction().RequestedBy())
	var broken *ledger.ApprovalDecision // the first that breaks the glass
	for i, p := range c.Log.Payloads() {
		if a, ok := p.(*ledger.ArtifactStored); ok && (a.Kind == ledger.KindAgain || a.Kind == ledger.KindElsewhere) {
			who := c.Proposers[a.Path]
			by, told := c.Requesters[a.Path]
			c.unasked = c.unasked || !told
			c.ask(by)
			c.untold = c.untold || len(who) == 0 || slices.ContainsFunc(who, ledger.Actor.Redacted)
			if a.Kind == ledger.KindElsewhere {
				c.elsewhere = append(slices.Clip(c.elsewhere), who...)
			} else {
				c.Authors = append(slices.Clip(c.Authors), who...)
			}
		}
		d, ok := p.(*ledger.ApprovalDecision)
		if !ok {
			continue
		}
		j := Judged{
			Decision: d.Decision, Fingerprint: d.Fingerprint, Author: d.Source.Author,
			Source: d.Source.Kind, CreatedAt: d.Source.CreatedAt, Said: d.Reason, Recorded: true,
		}
		j.Asked = c.askedFor(d.Source)
		if d.Source.Signature != nil {
			j.SignedBy = d.Source.Signature.KeyFingerprint
		}
		if c.Log.Request(d.ApprovalRequestID).Kind == policy.KindBreakGlass && d.Decision == ledger.Approve {
			j.Counted, j.Reason = c.breakGlass(*d, tallies)
			if j.Counted && broken == nil {
				broken = d
			}
		} else {
			j.Counted, j.Reason = c.count(*d, tallies, i)
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
		counts := 1
		if n.Owners {
			counts = max(1, len(n.Paths))
		}
		out[i] = &tally{
			need: n, fingerprint: policy.Fingerprint(n.Kind, patchID), voted: map[string]string{}, votes: make([]int, counts), parts: make([]int, counts),
		}
	}
	return out
}

// count judges one decision, at its place in the log, adds it to the tallies that it is for, and says
// whether it counted, and why: where no tally took it, why the first did not.
func (c Case) count(d ledger.ApprovalDecision, tallies []*tally, at int) (bool, string) {
	switch {
	case !slices.Contains(policy.Fingerprints(c.Log.Transaction().PatchID()), d.Fingerprint):
		return false, "names another patch"
	case d.Decision == ledger.Deny:
		return true, "denied"
	case d.Decision != ledger.Approve:
		return false, "is neither an approval nor a denial"
	}
	asked := slices.DeleteFunc(slices.Clone(tallies), func(t *tally) bool { return t.fingerprint != d.Fingerprint })
	if len(asked) == 0 {
		return false, "is not asked for"
	}
	if why := c.refuse(d); why != "" {
		return false, why
	}
	counted, reason := false, ""
	for _, t := range asked {
		why := c.refuseFor(t.need, d.Source)
		if !c.knew(d, at, t.need.After) {
			why = "was made before it was recorded what a tool found"
		}
		if why == "" {
			why = t.vote(c, d.Source)
		}
		counted = counted || why == ""
		reason = cmp.Or(reason, why)
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
	covered := func(t *tally) bool { return t.need.Kind != policy.KindSecret }
	lacks := func(t *tally) bool { n := t.sum(); return covered(t) && n.Approved < n.Required }
	if broken != nil && slices.ContainsFunc(tallies, lacks) {
		v.BreakGlass = true
		v.Needs = []Need{{Kind: policy.KindBreakGlass, Fingerprint: broken.Fingerprint, Required: 1, Approved: 1, By: []string{broken.Source.Author.ID}}}
		parts = []string{"break-glass by " + broken.Source.Author.Login + ": " + broken.Reason}
		tallies = slices.DeleteFunc(slices.Clone(tallies), covered)
	}
	met := true
	for _, t := range tallies {
		n := t.sum()
		v.Needs = append(v.Needs, n)
		met = met && n.Approved >= n.Required
		parts = append(parts, n.String())
	}
	if v.State == Denied {
		return
	}
	v.Reason = strings.Join(parts, "; ")
	if met {
		v.State = Approved
	}
}

// A tally is the votes for one need. Where code owners are asked, each path has
// its own count, as each has its own owners.
type tally struct {
	need        policy.Need
	fingerprint string
	voted       map[string]string // by id, and by every name: the login of the voter
	votes       []int             // for each path; one count where owners are not asked
	parts       []int             // those of them by people who had a part in the change
}

// vote adds a person's vote, or says why not.
func (t *tally) vote(c Case, from ledger.Source) string {
	id := "id " + from.Author.ID
	if t.voted[id] != "" {
		return "this person's vote is counted already"
	}
	names := c.names(from.Author, from.Signature)
	if from.Signature != nil && t.voted[from.Signature.KeyFingerprint] != "" {
		return "its key's vote is counted already"
	}
	for _, name := range names {
		if other := t.voted[name]; other != "" {
			return "by name or key its author is " + other + ", whose vote is counted already"
		}
	}
	goodFor, why := t.entitled(c, from.Author)
	if why != "" {
		return why
	}
	part := c.part(from)
	for i := range goodFor { // one is left for somebody else
		goodFor[i] = goodFor[i] && (part == "" || t.parts[i] < t.need.Required-1)
	}
	if !slices.Contains(goodFor, true) {
		return part
	}
	for _, name := range append(names, id) {
		t.voted[name] = cmp.Or(from.Author.Login, from.Author.ID)
	}
	for i, yes := range goodFor {
		if yes {
			t.votes[i]++
			if part != "" {
				t.parts[i]++
			}
		}
	}
	return ""
}

// sum is the need with its votes: how many people approved; with owners, of the
// path that fewest approved.
func (t *tally) sum() Need {
	n := Need{
		Kind: t.need.Kind, Fingerprint: t.fingerprint, Required: max(1, t.need.Required), Approved: slices.Min(t.votes), Signed: t.need.Signed,
		Of: t.need,
	}
	for _, voter := range slices.Sorted(maps.Keys(t.voted)) {
		if id, ok := strings.CutPrefix(voter, "id "); ok {
			n.By = append(n.By, id)
		}
	}
	for i, path := range t.need.Paths {
		if t.need.Owners && t.votes[i] < n.Required {
			n.Waiting = append(n.Waiting, path)
		}
	}
	return n
}

// entitled tells for which counts a person's vote is good, or why for none.
func (t *tally) entitled(c Case, who ledger.Actor) ([]bool, string) {
	all := slices.Repeat([]bool{true}, len(t.votes))
	if !t.need.Names() || t.need.Lists(who.ID, who.Login) {
		return all, ""
	}
	why := "its author is not one of " + t.need.People()
	for _, team := range t.need.Teams {
		in, err := ask(c.Teams, team, who)
		if err != nil {
			why = "whether its author is in " + team + " cannot be told: " + ledger.OneLine(err.Error(), 100)
		} else if in {
			return all, ""
		}
	}
	if !t.need.Owners {
		return nil, why
	}
	out := make([]bool, len(t.votes))
	for i, path := range t.need.Paths {
		owns, err := ask(c.Owners, path, who)
		if err != nil {
			why = "whether its author owns " + path + " cannot be told: " + ledger.OneLine(err.Error(), 100)
		}
		out[i] = owns && err == nil
	}
	if !slices.Contains(out, true) {
		return nil, why
	}
	return out, ""
}

func ask(f func(string, ledger.Actor) (bool, error), what string, who ledger.Actor) (bool, error) {
	if f == nil {
		return false, nil
	}
	return f(what, who)
}
