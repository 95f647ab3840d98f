package pipeline

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Judgement is a transaction with its Verdict. Apply takes one, so that no change
// gets there without having been through the gate.
type Judgement struct {
	Verdict approval.Verdict
	Ledger  writing.Snapshot // as the stage left it
	// Recorded reports whether this call added anything to the ledger.
	Recorded bool
	// Uncounted are what Decide left out of several decisions, and why.
	Uncounted []string
	log       *ledger.Log
	head      string    // HEAD, or the pull request's head, at that time
	at        time.Time // when the Verdict was asked for
	rules     Rules     // that the Verdict goes by
	advised   []policy.Advice
	denials   []ledger.Denial
	unjoined  []ledger.Denial // fetched with a ledger that could not be joined with this one
	patch     PatchSource     // where the patch is to be had
	secrets   redact.Finder
	offsets   []patch.Offset

	talk     *forge.Conversation // on its pull request, nil where that was not read
	standing *approval.Standing  // recorded with the apply, once there is one
	drift    func(from string) approval.Drift
	driftsTo string // the commit up to which drift is measured
	history  bool   // the Verdict is that of its apply

	signatures map[ledger.Signature]approval.Signature // that this stage is recording
	elsewhere  map[string]ledger.Elsewhere             // by artifact: who proposed it in other transactions, that this stage is recording; nil until it looked
}

// Log are the events that the Verdict is about.
func (g Judgement) Log() *ledger.Log { return g.log }

// Secrets is what the stage knew of secrets.
func (g Judgement) Secrets() redact.Finder { return g.secrets }

// Source is where the patch is to be had.
func (g Judgement) Source() PatchSource { return g.patch }

// Transaction is the state that the Verdict is about.
func (g Judgement) Transaction() ledger.Transaction { return g.log.Transaction() }

// Applying reports whether an apply was begun and has no end yet.
func (g Judgement) Applying() bool { return g.log.Applying() }

// Offsets are the hunks that were found at another line than they name, where this command read them.
func (g Judgement) Offsets() []patch.Offset { return g.offsets }

// Moved returns the files of an open transaction of no pull request that HEAD has not any more as the
// review found them: applied there, it is superseded.
func (g Judgement) Moved(ctx context.Context) ([]string, error) {
	tx := g.Transaction()
	if tx.Closed || tx.PullRequest() > 0 || g.Applying() || tx.Status == ledger.Applied || g.head == "" || g.head == tx.Pointers.Proposal.BaseCommit {
		return nil, nil
	}
	return g.patch.Moved(ctx, g.Ledger.Tree, tx, g.head)
}

// Err is nil when the verdict is approved, else a *PendingError or *DeniedError.
func (g Judgement) Err() error {
	id := g.Transaction().TransactionID
	switch g.Verdict.State {
	case approval.Approved:
		return nil
	case approval.Denied:
		return &DeniedError{ID: id, PatchID: g.Transaction().PatchID(), Reason: g.Verdict.Reason}
	}
	return &PendingError{id, g.Verdict, g.Transaction().PullRequest()}
}

// Pull is the pull request that a stage read, nil where it read none.
func (g Judgement) Pull() *forge.PullRequest {
	if g.talk == nil {
		return nil
	}
	pull := g.talk.Pull()
	return &pull
}

// Statements are what was said on the pull request that a stage read.
func (g Judgement) Statements() []approval.Statement {
	if g.talk == nil {
		return nil
	}
	return g.talk.Statements
}

// TeamsUnread reports whether a team was asked about that the forge does not show.
func (g Judgement) TeamsUnread() bool { return g.talk != nil && g.talk.TeamsUnread() }

// Policy is the one that the Verdict goes by.
func (g Judgement) Policy() policy.Policy { return g.rules.Policy }

// PolicyCommit is where the Policy was read from when the change was reviewed, ""
// where that has none.
func (g Judgement) PolicyCommit() string {
	ref := ledger.PolicyRef{Commit: g.log.Meta().PolicyCommit, SHA256: g.Transaction().Pointers.Proposal.PolicySHA256}
	rules, err := recorded(g.Ledger.Tree, g.log, ref)
	if err != nil || !rules.Found {
		return ""
	}
	return rules.Commit
}

// Needs are the approvals that the change takes.
func (g Judgement) Needs() []policy.Need {
	p := g.Transaction().Pointers.Proposal
	return g.rules.Policy.Needs(p.TargetFiles, p.ContainsSecrets, g.advised...)
}

// Commands are those that run before the change is applied, in words.
func (g Judgement) Commands() ([]string, error) {
	asked, err := checks.ReadAsked(g.Ledger.Tree, g.Transaction())
	return checks.Lines(g.rules.Policy, asked), err
}

// judge reads a transaction and decides on it. For one that was applied the
// verdict is history: by the Policy, and at the time, of its apply.
//
// A record that does not verify is no basis for a verdict: the first finding
// comes back as a *ledger.CorruptError. Of a pull request from reads what was
// said there; without it nobody is asked, and no approval there counts.
func (r *Runner) judge(ctx context.Context, snap writing.Snapshot, id string, from *forge.PullReader) (Judgement, error) {
	log, found, err := approval.CheckRecord(snap.Tree, id)
	if err == nil && len(found) > 0 {
		_, err = lookup.Read(snap.Tree, id) // what keeps it from being read is an error
	}
	if err != nil {
		return Judgement{}, err
	}
	if len(found) > 0 {
		return Judgement{}, &ledger.CorruptError{ID: id, Err: canon.ErrorOf(found)}
	}
	tx := log.Transaction()
	if !canon.IsHex64(tx.PatchID()) {
		return Judgement{}, lookup.NoPatch(id)
	}
	g := Judgement{Ledger: snap, log: log, at: r.Now(), patch: r.Source(), secrets: r.Secrets, offsets: r.offsets[tx.PatchID()]}
	if g.denials, err = ledger.Denials(snap.Tree, tx.PatchID()); err != nil {
		return Judgement{}, err
	}
	if tx.PullRequest() > 0 && !tx.Closed && from != nil {
		if g.talk, err = from.About(ctx, snap.Tree, log); err == nil {
			err = g.talk.AskAboutVoters(ctx, log)
		}
		if err != nil {
			return Judgement{}, err
		}
	}
	if event, policy, done := log.DecidedAt(); done {
		g.history = true
		err = g.asItWas(snap, event, policy)
	} else if g.rules, err = r.rulesFor(ctx, snap.Tree, g); err == nil && g.talk != nil {
		g.rules.Keys, err = g.talk.Keys(ctx, g.rules.Policy, g.rules.Keys, log)
	}
	if err == nil {
		g.advised, err = approval.Advised(g.dir(), log, decidedOn(log))
	}
	if err != nil {
		return Judgement{}, err
	}
	g.head = r.headOf(ctx, g)
	if _, _, done := log.DecidedAt(); !done {
		g.driftsTo = g.base()
		g.drift = r.driftTo(ctx, tx, g.driftsTo)
		if g.unjoined, err = snap.UnjoinedDenials(tx.PatchID()); err != nil {
			return Judgement{}, err
		}
	}
	g.Verdict = g.verdict(ctx, g.at)
	return g, nil
}

// rulesFor are the rules that an open transaction goes by now. Where its pull
// request was not read, nothing tells which branch that is to: it is what was
// asked for last, and no approval counts by it.
func (r *Runner) rulesFor(ctx context.Context, tree fs.FS, g Judgement) (Rules, error) {
	asked := ledger.Last[*ledger.ApprovalRequest](g.log)
	switch pull := g.Pull(); {
	case pull != nil && pull.State != forge.PullRequestOpen:
		if rules, err := r.CurrentRules(ctx, pull.Base.Branch); err == nil {
			return rules, nil // the branch may be gone, and nothing is applied there any more
		}
		return r.CurrentRules(ctx, "")
	case pull != nil:
		return r.CurrentRules(ctx, pull.Base.Branch)
	case g.Transaction().PullRequest() > 0 && asked != nil:
		return recorded(tree, g.log, asked.Policy)
	}
	return r.CurrentRules(ctx, "")
}

// headOf is the commit that approvals are of: the pull request's head as it was
// read, or HEAD. Without one no approval is one of it.
func (r *Runner) headOf(ctx context.Context, g Judgement) string {
	if pull := g.Pull(); pull != nil {
		return pull.Head.Commit
	}
	if g.Transaction().PullRequest() > 0 {
		return ""
	}
	if g.rules.Head != "" {
		return g.rules.Head
	}
	head, _ := r.Repo.Head(ctx)
	return head
}

// decidedOn is how many events of a log the Verdict is of: nothing that was recorded after an apply turns that of then.
func decidedOn(log *ledger.Log) int {
	if event, _, done := log.DecidedAt(); done {
		return event
	}
	return len(log.Payloads())
}

// asItWas takes the verdict's time, Policy and standing from the record.
func (g *Judgement) asItWas(snap writing.Snapshot, event int, policy ledger.PolicyRef) (err error) {
	if g.at, err = g.log.Time(event); err != nil {
		return err
	}
	if tx := g.Transaction(); tx.PullRequest() > 0 {
		if g.standing, err = forge.ReadStanding(snap.Tree, g.log); err != nil {
			return err
		}
		policy = g.standing.Policy
	}
	if g.rules, err = recorded(snap.Tree, g.log, policy); err != nil {
		return err
	}
	return g.driftAsItWas(event)
}

// verdict decides on a transaction under the rules at a moment.
func (g Judgement) verdict(ctx context.Context, now time.Time) approval.Verdict {
	p := g.Transaction().Pointers.Proposal
	c := approval.Case{
		Policy: g.rules.Policy, Needs: g.Needs(), Log: g.log, Denials: slices.Concat(g.denials, g.unjoined), Now: now, Head: g.head, PullRequest: p.PullRequest > 0, Authors: g.talk.Authors(p),
		Drift: g.drift, Signed: g.signedAt, People: approval.People(g.dir(), g.log, g.rules.Keys.Listed),
	}
	c.Party = g.party()
	if g.standing != nil {
		return g.told(c.On(*g.standing))
	}
	if g.talk != nil {
		c = g.talk.Ask(ctx, c, g.rules.Commit)
	}
	return g.told(c)
}

// told is the verdict of a case, with what people are told beside it.
func (g Judgement) told(c approval.Case) approval.Verdict {
	v := c.Decide()
	v.Drift = plain.ShownDrift(c, v)
	return plain.NameOwners(v, g.rules.OwnersOf)
}
