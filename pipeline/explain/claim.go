package explain

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Claim is a transaction that proposes a change, and whether it accounts for it under the
// Policy that the branch had. Why says so in words, and Code if it does not.
type Claim struct {
	TransactionID string        `json:"transaction_id"`
	Status        ledger.Status `json:"status"`
	Explains      bool          `json:"explains"`
	Code          Reason        `json:"code"`
	Why           string        `json:"why"`
	Strength      Strength      `json:"strength"`
	Kind          string        `json:"kind"` // of the proposal
	BaseCommit    string        `json:"base_commit"`
	AppliedCommit string        `json:"applied_commit"` // "" for a working tree, and where none was made
	Repository    string        `json:"repository"`     // of the pull request, else ""
	PullRequest   int           `json:"pull_request"`   // 0 for none
	Proposer      ledger.Actor  `json:"proposer"`
	Decisions     []Answer      `json:"decisions"`

	terms               terms     // that it was decided on
	lastEvent, lastSaid time.Time // of the last approval: when it was recorded, and when it was given
}

// An Answer is a decision that was recorded. Kind is what was asked for.
type Answer struct {
	Kind       string          `json:"kind"`
	Decision   ledger.Decision `json:"decision"`
	Author     ledger.Actor    `json:"author"`
	Permission string          `json:"permission"`
	Source     string          `json:"source"`
	URL        string          `json:"url"`
	CreatedAt  string          `json:"created_at"`
	Reason     string          `json:"reason"`
}

// By is what accounts for a commit if the transaction does.
func (c Claim) By() By {
	if c.Kind == ledger.KindPullRequest {
		return ByPullRequest
	}
	return ByTransaction
}

type claimKey struct{ id, terms string }

// claim says whether a transaction accounts for what its patch makes, on some terms.
func (j *judge) claim(e *entry, t terms) (*Claim, error) {
	key := claimKey{e.id, t.key}
	if known := j.claims[key]; known != nil {
		return known, nil
	}
	r, err := j.record(e.id)
	if err != nil {
		return nil, err
	}
	log, found := r.log, r.found
	c := &Claim{TransactionID: e.id, Code: RecordInvalid, Decisions: []Answer{}, terms: t}
	if len(found) > 0 {
		c.Why = fmt.Sprint("its record does not verify: ", canon.ErrorOf(found))
	}
	if log != nil {
		c.describe(log)
	}
	if len(found) == 0 {
		if c.Code, c.Why, err = j.stands(e, log); err == nil && c.Code == "" {
			err = j.decide(c, e, log, t)
		}
		if err != nil {
			return nil, err
		}
	}
	c.Explains = c.Code == ""
	j.claims[key] = c
	return c, nil
}

// describe takes over what the record says of the transaction.
func (c *Claim) describe(log *ledger.Log) {
	tx := log.Transaction() // whose texts are parts of the whole record, which is not to stay for them
	c.Status, c.Proposer = tx.Status, cloned(tx.Proposer)
	if p := tx.Pointers.Proposal; p != nil {
		c.Kind, c.BaseCommit, c.PullRequest = strings.Clone(p.Kind), strings.Clone(p.BaseCommit), p.PullRequest
		if p.Repository != nil {
			c.Repository = strings.Clone(p.Repository.Name)
		}
	}
	for i, p := range log.Payloads() {
		d, is := p.(*ledger.ApprovalDecision)
		if !is {
			continue
		}
		if at, err := log.Time(i); err == nil && d.Decision == ledger.Approve {
			c.lastEvent = later(c.lastEvent, at)
			if said, err := time.Parse(time.RFC3339, d.Source.CreatedAt); err == nil && approval.IsForge(d.Source) {
				c.lastSaid = later(c.lastSaid, said)
			}
		}
		c.Decisions = append(c.Decisions, Answer{
			Kind: strings.Clone(log.Request(d.ApprovalRequestID).Kind), Decision: d.Decision, Author: cloned(d.Source.Author),
			Permission: strings.Clone(d.Source.Permission), Source: strings.Clone(d.Source.Kind), URL: strings.Clone(d.Source.URL), CreatedAt: strings.Clone(d.Source.CreatedAt), Reason: strings.Clone(d.Reason),
		})
	}
	for _, done := range ledger.Of[*ledger.ApplyComplete](log) {
		if done.Success && c.AppliedCommit == "" {
			c.AppliedCommit = strings.Clone(done.CommitAfter)
		}
	}
}

func cloned(a ledger.Actor) ledger.Actor {
	a.Kind, a.ID, a.Login = strings.Clone(a.Kind), strings.Clone(a.ID), strings.Clone(a.Login)
	return a
}

// stands says by its record how a transaction ended, and why it accounts for nothing, whatever
// the Policy: it was denied, or not made.
func (j *judge) stands(e *entry, log *ledger.Log) (Reason, string, error) {
	tx := log.Transaction()
	late := false // whether it was denied after the apply began
	coming := false
	for _, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.ApplyStart:
			late, coming = false, p.Target == j.Coming
		case *ledger.ApprovalDecision:
			late = late || p.Decision == ledger.Deny
		case *ledger.ApplyComplete:
			// Of an apply that was cut off, what is found is recorded, whoever put it there.
			coming = false
			switch {
			case p.Success && (late || e.denied):
				return Denied, "it was denied before it was found to be applied", nil
			case p.Success:
				return "", "it was applied", nil
			}
		}
	}
	if tx.GateOnly() && tx.Status == ledger.Completed && !e.denied {
		return "", "it was merged as approved", nil
	}
	denials, err := ledger.Denials(j.Ledger, tx.PatchID())
	if err != nil {
		return "", "", err
	}
	approved := slices.ContainsFunc(ledger.Of[*ledger.ApprovalDecision](log), func(d *ledger.ApprovalDecision) bool { return d.Decision == ledger.Approve })
	switch {
	case tx.Status == ledger.Denied || len(denials) > 0:
		return Denied, "the patch was denied", nil
	case !approved:
		return NotApproved, "it was not approved", nil
	case coming:
		return "", "it is being applied", nil
	case !tx.GateOnly():
		return NotApplied, "it was not applied", nil
	case tx.Status == ledger.Superseded:
		return NotApproved, "the pull request's diff was another when it was last looked at", nil
	}
	return "", "it was approved when the ledger was last written", nil
}

// decide decides on a transaction again, by the Policy that the branch had.
func (j *judge) decide(c *Claim, e *entry, log *ledger.Log, t terms) error {
	if t.unknown != "" {
		c.Code, c.Why = UnknownPolicy, t.unknown
		return nil
	}
	a, err := j.account(e, log, t, time.Time{}, time.Time{})
	c.Strength = a.Strength
	switch {
	case err != nil:
		c.Code, c.Why = RecordInvalid, ledger.OneLine(err.Error(), 300)
	case a.Verdict.State == UnknownVerdict:
		c.Code, c.Why = UnknownPolicy, "what the Policy asks that the branch had, its record does not tell: "+ledger.OneLine(strings.Join(a.Unknown, "; "), 300)
	case a.Needed() != "":
		c.Code, c.Why = NotApproved, ledger.OneLine(a.Needed(), 300)
	case !a.Enough:
		c.Code, c.Why = WeakDecision, "its decisions are too weak to account for a commit: "+a.Strength.Words()
	}
	return nil
}

// sameOwners reports whether all recorded answers about owners are from the CODEOWNERS file
// that the branch had.
func (j *judge) sameOwners(e *entry, t terms) bool {
	owners := func(commit string) *forge.Owners {
		tree, err := j.Code.Tree(context.Background(), commit)
		if err != nil {
			return nil
		}
		read, err := forge.ReadOwners(tree)
		if err != nil {
			return nil
		}
		return read
	}
	had := t.lists[0].owners
	return had != nil && !slices.ContainsFunc(t.lists, func(r *rules) bool { return !reflect.DeepEqual(r.owners, had) }) &&
		!slices.ContainsFunc(e.policies, func(commit string) bool { return !reflect.DeepEqual(owners(commit), had) })
}

// account decides again on a transaction that was there at some times at the latest.
func (j *judge) account(e *entry, log *ledger.Log, t terms, merged, named time.Time) (Account, error) {
	dir, err := fs.Sub(j.Ledger, ledger.Dir(e.id))
	if err != nil {
		return Account{}, err
	}
	gated := t.gates || j.Index.part || slices.ContainsFunc(j.Index.entries[:j.Index.at[e.id]], func(o entry) bool { return o.ownDiff })
	return OnTerms(&j.policies, dir, log, nil, Terms{
		Policy: t.policy, Listed: t.listed, Owners: func() bool { return j.sameOwners(e, t) }, Kinds: Accounts(t.policy, gated), Least: j.AtLeast,
		Made: merged, Recorded: named,
	})
}

// tell says of what is accounted for where it was there before it was approved.
func (j *judge) tell() error {
	by := map[string]time.Time{} // of the chain: when the ledger had named it at the latest
	for i, span := range j.Index.Came(j.Chain, j.Now) {
		by[j.Chain[i].ID] = span.By
	}
	for commit, e := range j.Explained {
		w := j.of[commit]
		named := by[cmp.Or(j.brought[commit], commit)]
		for _, claim := range w.claims {
			entry := j.Index.entry(claim.TransactionID)
			if !claim.lastEvent.After(named) && (entry.merged.IsZero() || !claim.lastSaid.After(entry.merged)) {
				continue
			}
			log, err := lookup.Read(j.Ledger, claim.TransactionID)
			if err != nil {
				return err
			}
			a, err := j.account(entry, log, claim.terms, entry.merged, named)
			if err != nil {
				return &ledger.CorruptError{ID: claim.TransactionID, Err: err}
			}
			if !a.Late {
				continue
			}
			e.Late = fmt.Sprintf("%s was approved at %s, and the ledger named the commit at %s", claim.TransactionID, ledger.FormatTime(claim.lastEvent), ledger.FormatTime(named))
			if !entry.merged.IsZero() && claim.lastSaid.After(entry.merged) {
				e.Late = fmt.Sprintf("%s was approved at %s, and merged at %s", claim.TransactionID, ledger.FormatTime(claim.lastSaid), ledger.FormatTime(entry.merged))
			}
			j.Explained[commit] = e
		}
	}
	return nil
}

// A Span is when a commit came to a branch, by the ledger's word alone: not before After, and
// by By at the latest. After is zero where the ledger does not tell.
type Span struct{ After, By time.Time }

// Came tells for each commit of a chain, oldest first, when it came. It was there when the
// ledger first named it, or a later one of the chain, and it is there now; and it was not there
// before the apply began that made it, or an earlier one. Where a record contradicts that, nothing
// is known of the beginning: each commit has a time at which it may have come, so that none is
// left out of all periods.
func (x *Index) Came(chain []code.BranchCommit, now time.Time) []Span {
	out := make([]Span, len(chain))
	by, after := now, time.Time{}
	for i := len(chain) - 1; i >= 0; i-- {
		if at, is := x.named[chain[i].ID]; is && at.Before(by) {
			by = at
		}
		out[i].By = by
	}
	for i := range chain {
		if at, is := x.begun[chain[i].ID]; is && at.After(after) {
			after = at
		}
		if !after.After(out[i].By) {
			out[i].After = after
		}
	}
	return out
}

// Within reports whether a commit may have come at a time from a moment on and before
// another. One of which too little is known may be within several such times.
func (s Span) Within(from, end time.Time) bool { return !s.By.Before(from) && s.After.Before(end) }
