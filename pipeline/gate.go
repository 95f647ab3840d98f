package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// A Gated is a transaction with its Verdict. Apply takes one, so that no change
// gets there without having been through the gate.
type Gated struct {
	Verdict approval.Verdict
	Ledger  ledger.Snapshot // as the stage left it
	// Recorded reports whether this call added anything to the ledger.
	Recorded bool
	// Uncounted are what Decide left out of several decisions, and why.
	Uncounted []string
	log       *ledger.Log
	head      string    // HEAD, or the pull request's head, at that time
	at        time.Time // when the Verdict was asked for
	rules     Rules     // that the Verdict goes by
	denials   []ledger.Denial

	reading  *reading              // of its pull request, nil where that was not read
	talk     approval.Conversation // on the pull request
	standing *approval.Standing    // recorded with the apply, once there is one
}

// Log are the events that the Verdict is about.
func (g Gated) Log() *ledger.Log { return g.log }

// Transaction is the state that the Verdict is about.
func (g Gated) Transaction() ledger.Transaction { return g.log.Transaction() }

// Applying reports whether an apply was begun and has no end yet.
func (g Gated) Applying() bool {
	_, open := g.log.OpenApply()
	return open
}

// Err is nil when the verdict is approved, else a *PendingError or *DeniedError.
func (g Gated) Err() error {
	id := g.Transaction().TransactionID
	switch g.Verdict.State {
	case approval.Approved:
		return nil
	case approval.Denied:
		return &DeniedError{ID: id, PatchID: g.Transaction().PatchID(), Reason: g.Verdict.Reason}
	}
	return &PendingError{id, g.Verdict, g.Transaction().Pointers.Proposal.PullRequest}
}

// Gate adds up the decisions, opens the requests that are missing, and records
// the verdict where it moves the transaction on.
func (r *Runner) Gate(ctx context.Context, id string) (Gated, error) {
	return r.gate(ctx, id, r.reader())
}

// Gates is Gate for the transactions of one pull request in turn, which is read
// once for all of them.
func (r *Runner) Gates() func(ctx context.Context, id string) (Gated, error) {
	from := r.reader()
	return func(ctx context.Context, id string) (Gated, error) { return r.gate(ctx, id, from) }
}

func (r *Runner) gate(ctx context.Context, id string, from *reader) (Gated, error) {
	g, after, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[Gated], error) {
		g, err := r.judge(ctx, snap, id, from)
		if err != nil || g.Transaction().Closed {
			return nothing(g, err)
		}
		before := len(g.log.Events())
		s := r.stage(g.log)
		if err := r.recordDecisions(ctx, s, &g); err != nil {
			return nothing(g, err)
		}
		r.recordVerdict(s, g)
		if g.Recorded = len(g.log.Events()) > before; !g.Recorded {
			return nothing(g, nil)
		}
		return recording(g, s, ledger.Title{Stage: "gate", Outcome: string(g.Verdict.State), Subject: gateSubject(g.Verdict)})
	})
	g.Ledger = after
	return g, err
}

func gateSubject(v approval.Verdict) string {
	if v.State == approval.Pending {
		return "approval asked for (" + v.Reason + ")"
	}
	return string(v.State) + " (" + v.Reason + ")"
}

// judge reads a transaction and decides on it. For one that was applied the
// verdict is history: by the Policy, and at the time, of its apply.
//
// A record that does not verify is no basis for a verdict: the first finding
// comes back as a *ledger.CorruptError. Of a pull request from reads what was
// said there; without it nobody is asked, and no approval there counts.
func (r *Runner) judge(ctx context.Context, snap ledger.Snapshot, id string, from *reader) (Gated, error) {
	log, found, err := readRecord(snap.Tree, id)
	if err != nil {
		return Gated{}, err
	}
	if len(found) > 0 {
		return Gated{}, &ledger.CorruptError{ID: id, Err: fmt.Errorf("%s %s: %s", found[0].RuleID, found[0].Path, found[0].Message)}
	}
	tx := log.Transaction()
	if !canon.IsHex64(tx.PatchID()) {
		return Gated{}, &ledger.CorruptError{ID: id, Err: fmt.Errorf("it has no proposal")}
	}
	g := Gated{Ledger: snap, log: log, at: r.Now()}
	if g.denials, err = ledger.Denials(snap.Tree, tx.PatchID()); err != nil {
		return Gated{}, err
	}
	if err := r.conversation(ctx, snap, &g, from); err != nil {
		return Gated{}, err
	}
	if event, policy, done := decidedAt(log); done {
		err = g.asItWas(snap, event, policy)
	} else {
		g.rules, err = r.rulesFor(ctx, snap.Tree, g)
	}
	if err != nil {
		return Gated{}, err
	}
	g.head = r.headOf(ctx, g)
	g.Verdict = g.verdict(ctx, g.at)
	return g, nil
}

// headOf is the commit that approvals are of: the pull request's head as it was
// read, or HEAD. Without one no approval is one of it.
func (r *Runner) headOf(ctx context.Context, g Gated) string {
	p := g.Transaction().Pointers.Proposal
	switch {
	case g.reading != nil:
		return g.reading.pull.Head.Commit
	case p.PullRequest > 0:
		return ""
	}
	head, _ := r.Repo.Head(ctx)
	return head
}

// standing reads what an apply recorded of its approvals: the last before it.
func standing(tree fs.FS, log *ledger.Log) (*approval.Standing, error) {
	id := log.Transaction().TransactionID
	last := ""
	for _, a := range ledger.Of[*ledger.ArtifactStored](log) {
		if a.Kind == approval.KindStanding {
			last = a.Path
		}
	}
	var s approval.Standing
	raw, err := fs.ReadFile(tree, path.Join(ledger.Dir(id), last))
	if err == nil {
		err = canon.Unmarshal(raw, &s)
	}
	if err != nil {
		return nil, &ledger.CorruptError{ID: id, Err: fmt.Errorf("what its approvals were when it was applied: %w", err)}
	}
	return &s, nil
}

// asItWas takes the verdict's time, Policy and standing from the record.
func (g *Gated) asItWas(snap ledger.Snapshot, event int, policy ledger.PolicyRef) (err error) {
	if g.at, err = g.log.Time(event); err != nil {
		return err
	}
	if tx := g.Transaction(); tx.Pointers.Proposal.PullRequest > 0 {
		if g.standing, err = standing(snap.Tree, g.log); err != nil {
			return err
		}
		policy = g.standing.Policy
	}
	g.rules, err = recorded(snap.Tree, g.log, policy)
	return err
}

// decidedAt returns the event that a verdict which is history was for, and the
// Policy that it went by: the apply/start of the apply that succeeded, or of a
// pull request's own diff that it was merged.
func decidedAt(log *ledger.Log) (event int, policy ledger.PolicyRef, done bool) {
	tx := log.Transaction()
	if tx.GateOnly() && tx.Status == ledger.Completed {
		for i, p := range log.Payloads() {
			if p.Type() == ledger.TypeValidateComplete {
				event = i
			}
		}
		return event, policy, true // the standing has it
	}
	if event, done = appliedAs(log); done {
		policy = log.Payloads()[event].(*ledger.ApplyStart).Policy
	}
	return event, policy, done
}

// appliedAs returns which event is the apply/start of the apply that succeeded.
func appliedAs(log *ledger.Log) (event int, done bool) {
	for i, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.ApplyStart:
			event = i
		case *ledger.ApplyComplete:
			done = done || p.Success
		}
	}
	return event, done
}

// verdict decides on a transaction under the rules at a moment.
func (g Gated) verdict(ctx context.Context, now time.Time) approval.Verdict {
	p := g.Transaction().Pointers.Proposal
	c := approval.Case{
		Policy: g.rules.Policy, Needs: g.rules.Policy.Needs(p.TargetFiles, p.ContainsSecrets),
		Log: g.log, Denials: g.denials, Now: now, Head: g.head, PullRequest: p.PullRequest > 0, Authors: p.Authors,
	}
	if g.standing != nil {
		return c.On(*g.standing).Decide()
	}
	if g.reading != nil {
		c.Stands, c.Teams, c.Owners = g.stands, g.reading.team(ctx), g.reading.owner(ctx, g.rules.Commit)
	}
	return c.Decide()
}

// recordVerdict records what a verdict means for a transaction that is still open.
func (r *Runner) recordVerdict(s *ledger.Stage, g Gated) {
	status := s.Log.Transaction().Status
	switch v := g.Verdict; v.State {
	case approval.Pending:
		g.request(s)
		if status == ledger.Proposed {
			s.Status(ledger.Awaiting, "approval asked for")
		}
	case approval.Approved:
		if status == ledger.Awaiting {
			s.Status(ledger.Proposed, "approved")
		}
	case approval.Denied:
		_, applying := s.Log.OpenApply()
		if canBeDenied[status] && !applying {
			s.Status(ledger.Denied, r.oneLine(v.Reason, 300))
			s.Close()
		}
	}
}

var canBeDenied = map[ledger.Status]bool{ledger.Proposed: true, ledger.Awaiting: true, ledger.Failed: true}

// request opens as many requests as approvals are missing.
func (g Gated) request(s *ledger.Stage) {
	open := map[string]int{}
	for _, q := range s.Log.OpenRequests() {
		open[q.Fingerprint]++
	}
	for _, missing := range g.Verdict.Missing() {
		if open[missing.Fingerprint]--; open[missing.Fingerprint] < 0 {
			g.ask(s, missing)
		}
	}
}

func (g Gated) ask(s *ledger.Stage, about approval.Request) string {
	g.rules.note(s)
	item, _ := s.Log.FileChange()
	tx := s.Log.Transaction()
	id := fmt.Sprintf("req_%d", len(ledger.Of[*ledger.ApprovalRequest](s.Log))+1)
	s.Event(&ledger.ApprovalRequest{
		TransactionID: tx.TransactionID, TurnID: item.TurnID, ApprovalRequestID: id, ItemID: item.Item.ID,
		Kind: about.Kind, Fingerprint: about.Fingerprint, Policy: g.rules.ref(),
		Prompt: fmt.Sprintf(prompts[about.Kind], plural(len(item.Item.Changes), "change", "changes")),
	})
	return id
}

// prompts ask for an approval of one kind.
var prompts = map[string]string{
	policy.KindFileChange: "Apply %s?",
	policy.KindSecret:     "Apply %s although there is what looks like a secret among them?",
	policy.KindProtected:  "Apply %s although there are protected files among them?",
	policy.KindBreakGlass: "Apply %s without the approvals that the Policy asks for?",
}
