package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Interrupt closes a transaction that nobody will take further. Unlike a
// denial it says nothing about the patch. An apply that was begun, here or
// elsewhere, and is not going on is recorded as what is found here.
func (r *Runner) Interrupt(ctx context.Context, id, reason string) (Judgement, error) {
	if err := r.endApply(ctx, id); err != nil {
		return Judgement{}, err
	}
	g, after, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[Judgement], error) {
		g, err := r.judge(ctx, snap, id, nil)
		if err != nil {
			return Nothing(g, err)
		}
		tx := g.Transaction()
		if tx.Closed || g.Applying() {
			return Nothing(g, ClosedError(id, tx.Status))
		}
		s := r.Stage(g.log)
		s.Status(ledger.Interrupted, r.OneLine(reason, 300))
		s.Close()
		g.Recorded = true
		return Recording(g, s, writing.Title{Stage: "close", Outcome: string(ledger.Interrupted), Subject: "interrupted: " + reason})
	})
	g.Ledger = after
	return g, err
}

func (r *Runner) endApply(ctx context.Context, id string) error {
	snap, err := r.Ledger(ctx, Paths(id)...)
	if err != nil {
		return err
	}
	g, err := r.judge(ctx, snap, id, nil)
	if err != nil {
		return err
	}
	if !g.Applying() {
		return nil
	}
	to, err := r.target(ctx, g, ApplyOptions{}, r.Reader())
	if err != nil {
		return err
	}
	unlock, err := to.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return r.giveUp(ctx, to, g, "the transaction was closed")
}

// EndOwnDiff ends a transaction of a pull request's own diff after the pull request was
// closed: as completed if it was merged, approved, and whyNot, which says why what was merged is
// not what was approved, has nothing to say; else as interrupted. As what it was merged is
// recorded before. What cannot be read is an error, and ends nothing.
func (r *Runner) EndOwnDiff(ctx context.Context, id string, whyNot func(context.Context, Judgement) (string, error)) (Judgement, error) {
	from := r.Reader()
	g, after, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[Judgement], error) {
		g, err := r.judge(ctx, snap, id, from)
		if err != nil || g.Transaction().Closed {
			return Nothing(g, err)
		}
		passed, err := g.whenItPassed(ctx)
		if err != nil {
			return Nothing(g, err)
		}
		s := r.Stage(g.log)
		pull := g.Pull()
		if pull.State == forge.PullRequestMerged {
			merge, err := forge.MergedAs(pull.Repository, pull.Number, pull.Base.Branch, pull.Head.Commit, pull.MergeCommit, pull.MergedAt)
			if err != nil {
				return Nothing(g, &forge.ReadingError{PullRequest: pull.Number, Err: err})
			}
			s.Artifact(approval.KindMerge, merge)
		}
		if err := r.recordDecisions(ctx, s, &g); err != nil {
			return Nothing(g, err)
		}
		if g.Verdict.State != approval.Pending { // nobody is asked any more
			r.recordVerdict(ctx, s, g)
		}
		g.Recorded = true
		if s.Log.Transaction().Closed { // denied
			return Recording(g, s, writing.Title{Stage: "gate", Outcome: string(g.Verdict.State), Subject: gateSubject(g.Verdict)})
		}
		why, done := "", "what was merged is the approved patch"
		switch {
		case pull.State != forge.PullRequestMerged:
			why = "the pull request was closed"
		case g.Err() == nil:
		case passed == nil:
			why = "the pull request was merged without every approval"
		case passed.Err() != nil:
			why = "it was approved before the merge, and an approval no longer stood when that was recorded: " + lost(passed.Verdict)
		default: // its authors may do less by now, or the Policy asks for more
			done += "; approved before the merge, and not if it were asked for now: " + lost(g.Verdict)
			g.Verdict, g.standing = passed.Verdict, passed.standing
		}
		if why == "" {
			if why, err = whyNot(ctx, g); err != nil {
				return Nothing(g, err)
			}
			why = r.OneLine(why, 300)
		}
		if why == "" && g.standing == nil && g.onRecord(ctx, s).State != approval.Approved {
			why = "the pull request was merged without every approval"
		}
		if why != "" {
			s.Status(ledger.Interrupted, why)
			s.Close()
			return Recording(g, s, writing.Title{Stage: "close", Outcome: string(ledger.Interrupted), Subject: "interrupted: " + why})
		}
		s.Event(writing.NextValidate(s.Log))
		s.Event(&ledger.ValidateComplete{TransactionID: id, ValidateID: "validate_1", Success: true})
		s.Status(ledger.Completed, r.OneLine(done, 300))
		s.Close()
		return Recording(g, s, writing.Title{Stage: "validate", Outcome: string(ledger.Completed), Subject: "completed, what was merged is the approved patch"})
	})
	g.Ledger = after
	return g, err
}

// whenItPassed is a transaction of a pull request's own diff by the Policy, and by what the
// forge answered about people, as both were recorded when its check passed last. Only whether
// what was said stands is asked now: what came after the merge takes nothing back. It is nil where
// the check does not pass on record, or passed on another head.
func (g Judgement) whenItPassed(ctx context.Context) (*Judgement, error) {
	if g.Transaction().Status != ledger.Proposed || len(g.log.Artifacts(approval.KindStanding)) == 0 {
		return nil, nil
	}
	standing, err := forge.ReadStanding(g.Ledger.Tree, g.log)
	if err != nil || standing.HeadCommit != g.head {
		return nil, err
	}
	keys := g.rules.Keys // whoever can write the ledger can put any into it
	if g.rules, err = recorded(g.Ledger.Tree, g.log, standing.Policy); err != nil {
		return nil, err
	}
	g.rules.Keys = keys
	if err := g.driftAsItWas(len(g.log.Payloads())); err != nil {
		return nil, err
	}
	said := g.talk.Transcript
	if at, err := time.Parse(time.RFC3339, g.talk.Pull().MergedAt); err == nil {
		said = said.Until(at)
	}
	said.Heads = maps.Clone(said.Heads) // a head that was merged differs in nothing from its merge base
	for _, d := range ledger.Of[*ledger.ApprovalDecision](g.log) {
		said.Heads[d.Source.Commit] = true
		for i, was := range standing.Decisions {
			if was.ApprovalRequestID == d.ApprovalRequestID && was.Stands {
				standing.Decisions[i].Reason = said.Stands(*d)
				standing.Decisions[i].Stands = standing.Decisions[i].Reason == ""
			}
		}
	}
	g.standing = standing
	g.Verdict = g.verdict(ctx, g.at)
	return &g, nil
}

// lost says what a verdict comes to, and why the first approval that does not count does not.
func lost(v approval.Verdict) string {
	i := slices.IndexFunc(v.Decisions, func(j approval.Judged) bool { return j.Decision == ledger.Approve && !j.Counted })
	if i < 0 {
		return v.Reason
	}
	return fmt.Sprintf("%s (%s: %s)", v.Reason, v.Decisions[i].Author.Login, v.Decisions[i].Reason)
}

// Supersede ends an open transaction whose place another one has taken, unless its apply was begun.
func (r *Runner) Supersede(ctx context.Context, id, by, why string) error {
	_, _, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[none], error) {
		log, err := lookup.Read(snap.Tree, id)
		if err != nil || log.Transaction().Closed || log.Applying() || log.Transaction().Status == ledger.Applied {
			return Nothing(none{}, err)
		}
		s, title := r.Succeeded(log, by, why)
		return Recording(none{}, s, title)
	})
	return err
}

// Succeeded ends a transaction whose place another one has taken.
func (r *Runner) Succeeded(log *ledger.Log, by, why string) (*writing.Stage, writing.Title) {
	s := r.Stage(log)
	s.Status(ledger.Superseded, fmt.Sprintf("superseded by %s: %s", by, why))
	s.Close()
	return s, writing.Title{Stage: "apply", Outcome: string(ledger.Superseded), Subject: "superseded by " + by}
}

// EnterDenied records a denial that was said after a transaction was closed, and
// returns the id of the record that has it, "" where nothing new was said.
// A closed record takes nothing more: the patch is entered once more, by propose,
// which begins a transaction that proposes what the closed one in dir did.
func (r *Runner) EnterDenied(ctx context.Context, tx ledger.Transaction, from *forge.PullReader, propose func(dir fs.FS, closed *ledger.Log) (*writing.Stage, error)) (string, writing.Snapshot, error) {
	paths := append(Paths(tx.TransactionID), ledger.DeniedDir(tx.PatchID()), ledger.Day(r.Now()))
	return Update(ctx, r, paths, func(snap writing.Snapshot) (Try[string], error) {
		g, err := r.judge(ctx, snap, tx.TransactionID, nil)
		if err != nil || !g.Transaction().Closed || len(g.denials) > 0 {
			return Nothing("", err)
		}
		said, err := r.lateDenial(ctx, &g, from)
		if said == nil || err != nil {
			return Nothing("", err)
		}
		dir, err := fs.Sub(snap.Tree, ledger.Dir(tx.TransactionID))
		if err != nil {
			return Nothing("", err)
		}
		s, err := propose(dir, g.log)
		if err != nil {
			return Nothing("", err)
		}
		g.log = s.Log
		r.record(s, &g, *said, g.talk.Known(said.Author), nil) // a denial needs no signature
		g.Verdict = g.verdict(ctx, g.at)
		r.recordVerdict(ctx, s, g)
		entered := s.Log.Transaction()
		return Recording(entered.TransactionID, s, writing.Title{Stage: "review", Outcome: string(entered.Status), Subject: entered.Notes})
	})
}

// lateDenial is the first denial of a closed transaction's patch that counts, nil
// for none.
func (r *Runner) lateDenial(ctx context.Context, g *Judgement, from *forge.PullReader) (*forge.Remark, error) {
	var err error
	if g.talk, err = from.About(ctx, g.Ledger.Tree, g.log); err != nil {
		return nil, err
	}
	if g.rules, err = r.rulesFor(ctx, g.Ledger.Tree, *g); err != nil {
		return nil, err
	}
	g.head = r.headOf(ctx, *g)
	for _, said := range g.talk.Said() {
		if decision, _ := said.Command.Decision(); decision != ledger.Deny || said.Void != "" || said.Author.ID == "" {
			continue
		}
		if _, err := g.talk.Access(ctx, said.Author); err != nil {
			return nil, err
		}
		if g.talk.WhyNoDenial(g.rules.Policy, g.log.Meta().Proposer, said.Author) == "" {
			return &said, nil
		}
	}
	return nil, nil
}
