package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Gate adds up the decisions, opens the requests that are missing, and records
// the verdict where it moves the transaction on.
func (r *Runner) Gate(ctx context.Context, id string) (Judgement, error) {
	return r.GateFrom(ctx, id, r.Reader())
}

// GateToMerge is Gate right before this program merges the pull request: what the forge
// answered about the approvals is recorded, as before an apply.
func (r *Runner) GateToMerge(ctx context.Context, id string) (Judgement, error) {
	return r.gate(ctx, id, r.Reader(), true)
}

// GateFrom is Gate for one of the transactions of a pull request, which is read
// once for all of them.
func (r *Runner) GateFrom(ctx context.Context, id string, from *forge.PullReader) (Judgement, error) {
	return r.gate(ctx, id, from, false)
}

func (r *Runner) gate(ctx context.Context, id string, from *forge.PullReader, merges bool) (Judgement, error) {
	g, after, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[Judgement], error) {
		g, err := r.judge(ctx, snap, id, from)
		if err != nil || g.Transaction().Closed {
			return Nothing(g, err)
		}
		before := len(g.log.Events())
		s := r.Stage(g.log)
		if err := r.recordDecisions(ctx, s, &g); err != nil {
			return Nothing(g, err)
		}
		r.recordVerdict(ctx, s, g)
		if merges && g.Err() == nil {
			g.onRecord(ctx, s)
		}
		if g.Recorded = len(g.log.Events()) > before; !g.Recorded {
			return Nothing(g, nil)
		}
		return Recording(g, s, writing.Title{Stage: "gate", Outcome: string(g.Verdict.State), Subject: gateSubject(g.Verdict)})
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

// recordVerdict records what a verdict means for a transaction that is still open. That a
// pull request's own diff is approved lets people merge it, whenever they like: what the forge
// answered is recorded with that.
func (r *Runner) recordVerdict(ctx context.Context, s *writing.Stage, g Judgement) {
	status := s.Log.Transaction().Status
	switch v := g.Verdict; v.State {
	case approval.Pending: // as many requests are open as approvals are missing, of the Policy that was asked by last
		open := map[string]int{}
		if last := ledger.Last[*ledger.ApprovalRequest](s.Log); last != nil && last.Policy.SHA256 == g.rules.ref().SHA256 {
			for _, q := range writing.OpenRequests(s.Log) {
				if q.Policy.SHA256 == last.Policy.SHA256 {
					open[q.Fingerprint]++
				}
			}
		}
		for _, missing := range plain.Missing(v) {
			if open[missing.Fingerprint]--; open[missing.Fingerprint] < 0 {
				g.ask(s, missing)
			}
		}
		if status == ledger.Proposed {
			s.Status(ledger.Awaiting, "approval asked for")
		}
	case approval.Approved:
		if status == ledger.Awaiting {
			if tx := s.Log.Transaction(); g.talk != nil && tx.GateOnly() {
				g.onRecord(ctx, s)
			}
			s.Status(ledger.Proposed, "approved")
		}
	case approval.Denied:
		if len(g.unjoined) > 0 {
			return // it is recorded there, and comes with the join
		}
		if !s.Log.Applying() && (status == ledger.Proposed || status == ledger.Awaiting || status == ledger.Failed) {
			s.Status(ledger.Denied, r.OneLine(v.Reason, 300))
			s.Close()
		}
	}
}

// ask opens a request.
func (g Judgement) ask(s *writing.Stage, about approval.Request) string {
	g.rules.Note(s)
	item, _ := writing.FileChange(s.Log)
	tx := s.Log.Transaction()
	id := fmt.Sprintf("req_%d", len(ledger.Of[*ledger.ApprovalRequest](s.Log))+1)
	s.Event(&ledger.ApprovalRequest{
		TransactionID: tx.TransactionID, TurnID: item.TurnID, ApprovalRequestID: id, ItemID: item.Item.ID,
		Kind: about.Kind, Fingerprint: about.Fingerprint, Policy: g.rules.ref(),
		Prompt: fmt.Sprintf(prompts[about.Kind], ledger.Plural(len(item.Item.Changes), "change", "changes")),
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

// recordDecisions records what was said and counts, and tells why the rest does
// not; of that, what is exactly a decision on this patch is kept as evidence.
func (r *Runner) recordDecisions(ctx context.Context, s *writing.Stage, g *Judgement) error {
	if g.talk == nil { // nobody was asked
		return nil
	}
	var uncounted []approval.Judged
	for _, said := range g.talk.Said() {
		if said.Recorded(g.log) {
			continue
		}
		why, err := r.recordDecision(ctx, s, g, said)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		decision, exact := said.Command.Decision()
		if exact && ledger.FingerprintPatch(said.Command.Fingerprint) == g.Transaction().PatchID() && len(s.Log.Artifacts(approval.KindStatement)) < forge.KeptStatements {
			s.Artifact(approval.KindStatement, said.Doc(g.talk.Known(said.Author)))
		}
		uncounted = append(uncounted, approval.Judged{
			Decision: decision, Fingerprint: said.Command.Fingerprint, Author: said.Author,
			Source: said.Kind, CreatedAt: said.CreatedAt, Reason: why, Said: said.Command.Reason,
		})
	}
	g.Verdict = g.verdict(ctx, g.at)
	g.Verdict.Decisions = append(g.Verdict.Decisions, uncounted...)
	return nil
}

// recordDecision records one decision, or says why it does not count.
func (r *Runner) recordDecision(ctx context.Context, s *writing.Stage, g *Judgement, said forge.Remark) (why string, err error) {
	decision, recordable := said.Command.Decision()
	switch {
	case said.Void != "":
		return said.Void, nil
	case !recordable:
		return "says nothing that can be acted on", nil
	case said.Author.ID == "":
		return "its author is not known", nil
	}
	access, err := g.talk.Access(ctx, said.Author)
	if err != nil {
		return "", err
	}
	var signature *proven
	if said.Command.Signed {
		err := r.noteElsewhere(ctx, s, g) // its signer was shown them
		if err != nil && decision == ledger.Approve {
			return "", err
		}
		if err == nil {
			signature, err = r.proveSaid(s, *g, said, access)
		}
		if err != nil && decision == ledger.Approve { // a denial needs none
			return "its signature does not count: " + r.OneLine(err.Error(), 300), nil
		}
	}
	if decision == ledger.Deny {
		for _, d := range ledger.Of[*ledger.ApprovalDecision](g.log) {
			if d.Decision == ledger.Deny && d.Fingerprint == said.Command.Fingerprint {
				return "", nil // one denial says it, and the index of them is write-once
			}
		}
		why = g.talk.WhyNoDenial(g.rules.Policy, g.log.Meta().Proposer, said.Author)
	} else {
		why = r.whyNotCounted(ctx, *g, said, access, signature)
		if why == "" && g.elsewhere == nil { // unless somebody proposed the same elsewhere
			if err = r.noteElsewhere(ctx, s, g); err == nil {
				why = r.whyNotCounted(ctx, *g, said, access, signature)
			}
		}
	}
	if why == "" && err == nil {
		r.record(s, g, said, access, signature)
	}
	return why, err
}

// whyNotCounted says why an approval would not count, having recorded it in a copy.
func (r *Runner) whyNotCounted(ctx context.Context, g Judgement, said forge.Remark, access approval.Access, signature *proven) string {
	g.log = g.log.Clone()
	r.record(r.Stage(g.log), &g, said, access, signature)
	all := g.verdict(ctx, g.at).Decisions
	if last := all[len(all)-1]; !last.Counted {
		return last.Reason
	}
	return ""
}

// record adds a decision of a pull request to a stage, after what shows that it
// was taken, and its signature, if it has a good one.
func (r *Runner) record(s *writing.Stage, g *Judgement, said forge.Remark, access approval.Access, signature *proven) {
	d := r.decision(*g, said, access)
	d.Source.Evidence = s.Artifact(approval.KindStatement, said.Doc(access))
	d.Source.Signature = g.store(s, signature)
	g.enter(s, approval.Request{Kind: said.Command.RequestKind(), Fingerprint: d.Fingerprint}, d)
}

// decision is what was said on a pull request, as the ledger has it.
func (r *Runner) decision(g Judgement, said forge.Remark, access approval.Access) ledger.ApprovalDecision {
	decision, _ := said.Command.Decision()
	return ledger.ApprovalDecision{
		Decision: decision, Fingerprint: said.Command.Fingerprint, Reason: r.OneLine(said.Command.Reason, 500), Source: said.Source(access, g.head, ""),
	}
}

// proveSaid verifies the signature of what was said on a pull request.
func (r *Runner) proveSaid(s *writing.Stage, g Judgement, said forge.Remark, access approval.Access) (*proven, error) {
	signature, _, err := approval.ParseSigned(said.Text)
	if err != nil {
		return nil, err
	}
	if r.Secrets.Text(said.Text) != said.Text {
		return nil, errors.New("it has what looks like a secret in it, which the ledger does not keep: sign again without it")
	}
	return r.prove(s, g, signature, r.decision(g, said, access), said.Command.RequestKind())
}

// noteElsewhere records who proposed the patch in other transactions of the ledger, before an approval: from the
// record alone it is then found that they approve their own change (T10). Nobody is recorded twice, and a stage looks
// once: what it stages itself is not in the ledger yet. A ledger that is elsewhere is asked for all of it at once.
func (r *Runner) noteElsewhere(ctx context.Context, s *writing.Stage, g *Judgement) error {
	if g.elsewhere != nil {
		return nil
	}
	listed := ledger.ProposedDir(g.Transaction().PatchID())
	if names, err := fs.ReadDir(g.Ledger.Tree, listed); err == nil && len(names) > 1 {
		paths := []string{listed}
		for _, name := range names {
			paths = append(paths, Paths(strings.TrimSuffix(name.Name(), ".json"))...)
		}
		if _, err := r.Ledger(ctx, paths...); err != nil {
			return err
		}
	}
	dir, err := fs.Sub(g.Ledger.Tree, ledger.Dir(g.Transaction().TransactionID))
	if err != nil {
		return err
	}
	found, err := lookup.ProposedElsewhere(g.Ledger.Tree, dir, s.Log)
	if err != nil {
		return err
	}
	g.elsewhere = map[string]ledger.Elsewhere{}
	if len(found) > 0 {
		doc := ledger.Elsewhere{Schema: ledger.ElsewhereSchema, PatchID: g.Transaction().PatchID(), Proposals: found}
		g.elsewhere[s.Artifact(ledger.KindElsewhere, doc)] = doc
	}
	return nil
}

// enter records a decision as the answer to a request, and a denial where it
// cannot be overlooked.
func (g Judgement) enter(s *writing.Stage, about approval.Request, d ledger.ApprovalDecision) {
	tx := s.Log.Transaction()
	d.TransactionID = tx.TransactionID
	if d.ApprovalRequestID == "" {
		d.ApprovalRequestID = g.openRequest(s, about)
	}
	g.rules.Note(s)
	d.Policy = g.rules.ref()
	s.Event(&d)
	if d.Decision != ledger.Deny || len(g.denials) > 0 {
		return // the index is write-once
	}
	s.Denied(ledger.Denial{
		Fingerprint: about.Fingerprint, Kind: about.Kind, TransactionID: tx.TransactionID,
		Author: d.Source.Author, Reason: d.Reason, DeniedAt: d.Source.CreatedAt,
	})
}

// openRequest returns a request that waits for an answer, and opens one where
// there is none: a denial always finds one.
func (g Judgement) openRequest(s *writing.Stage, about approval.Request) string {
	if s.Log.Transaction().Status == ledger.Proposed && g.Verdict.State == approval.Pending {
		defer s.Status(ledger.Awaiting, "approval asked for")
	}
	for _, q := range writing.OpenRequests(s.Log) {
		if q.Fingerprint == about.Fingerprint && q.Kind == about.Kind && q.Policy.SHA256 == g.rules.ref().SHA256 {
			return q.ApprovalRequestID
		}
	}
	return g.ask(s, about)
}

// onRecord is the verdict as anybody can find it again from the record alone:
// what the forge answered when it was asked again goes into it.
//
// How far the base had moved is recorded too, where the Policy bounds that.
func (g Judgement) onRecord(ctx context.Context, s *writing.Stage) approval.Verdict {
	if g.rules.Policy.Approvals.Drift != nil {
		s.Artifact(approval.KindDrift, forge.DriftDoc(s.Log, g.driftsTo, g.drift))
	}
	if g.talk == nil {
		return g.verdict(ctx, g.at)
	}
	g.rules.Note(s)
	doc := g.talk.Standing(g.at, g.rules.ref(), s.Log)
	s.Artifact(approval.KindStanding, doc)
	g.standing = &doc
	return g.verdict(ctx, g.at)
}

// Note records the comments that were made for a transaction.
func (r *Runner) Note(ctx context.Context, id string, comments []forge.Posted) (writing.Snapshot, error) {
	_, after, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[none], error) {
		log, err := lookup.Read(snap.Tree, id)
		if err != nil || log.Transaction().Closed {
			return Nothing(none{}, err)
		}
		known, err := forge.ReadPosted(snap.Tree, log)
		if err != nil {
			return Nothing(none{}, err)
		}
		var fresh []forge.Posted
		for _, c := range comments {
			if !slices.Contains(known, c) {
				fresh = append(fresh, c)
			}
		}
		if len(fresh) == 0 {
			return Nothing(none{}, nil)
		}
		s := r.Stage(log)
		s.Artifact(forge.KindPosted, forge.NewPostedDoc(fresh))
		return Recording(none{}, s, writing.Title{Stage: "gate", Outcome: string(approval.Pending), Subject: fmt.Sprintf("asked on pull request %d", log.Transaction().PullRequest())})
	})
	return after, err
}
