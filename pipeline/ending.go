package pipeline

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/conversation"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// Interrupt closes a transaction that nobody will take further. Unlike a
// denial it says nothing about the patch. An apply that was begun, here or
// elsewhere, and is not going on is recorded as what is found here.
func (r *Runner) Interrupt(ctx context.Context, id, reason string) (Gated, error) {
	if err := r.endApply(ctx, id); err != nil {
		return Gated{}, err
	}
	g, after, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[Gated], error) {
		g, err := r.judge(ctx, snap, id, nil)
		if err != nil {
			return nothing(g, err)
		}
		tx := g.Transaction()
		if tx.Closed || g.Applying() {
			return nothing(g, &ClosedError{id, tx.Status})
		}
		s := r.stage(g.log)
		s.Status(ledger.Interrupted, r.oneLine(reason, 300))
		s.Close()
		g.Recorded = true
		return recording(g, s, ledger.Title{Stage: "close", Outcome: string(ledger.Interrupted), Subject: "interrupted: " + reason})
	})
	g.Ledger = after
	return g, err
}

func (r *Runner) endApply(ctx context.Context, id string) error {
	snap, err := r.Ledger(ctx, transaction(id)...)
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

// EndOwnDiff ends a transaction of a pull request's own diff after the pull
// request was closed: as completed if it is approved on record and whyNot, which
// says why what became of the pull request is not what was approved, has nothing to
// say; else as interrupted.
func (r *Runner) EndOwnDiff(ctx context.Context, id string, whyNot func(context.Context, Gated) string) (Gated, error) {
	from := r.Reader()
	g, after, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[Gated], error) {
		g, err := r.judge(ctx, snap, id, from)
		if err != nil || g.Transaction().Closed {
			return nothing(g, err)
		}
		s := r.stage(g.log)
		if err := r.recordDecisions(ctx, s, &g); err != nil {
			return nothing(g, err)
		}
		if g.Verdict.State != approval.Pending { // nobody is asked any more
			r.recordVerdict(s, g)
		}
		g.Recorded = true
		if s.Log.Transaction().Closed { // denied
			return recording(g, s, ledger.Title{Stage: "gate", Outcome: string(g.Verdict.State), Subject: gateSubject(g.Verdict)})
		}
		why := r.oneLine(whyNot(ctx, g), 300)
		if why == "" && g.onRecord(ctx, s).State != approval.Approved {
			why = "the pull request was merged without every approval"
		}
		if why != "" {
			s.Status(ledger.Interrupted, why)
			s.Close()
			return recording(g, s, ledger.Title{Stage: "close", Outcome: string(ledger.Interrupted), Subject: "interrupted: " + why})
		}
		s.Event(&ledger.ValidateStart{TransactionID: id, ValidateID: "validate_1"})
		s.Event(&ledger.ValidateComplete{TransactionID: id, ValidateID: "validate_1", Success: true})
		s.Status(ledger.Completed, "what was merged is the approved patch")
		s.Close()
		return recording(g, s, ledger.Title{Stage: "validate", Outcome: string(ledger.Completed), Subject: "completed, what was merged is the approved patch"})
	})
	g.Ledger = after
	return g, err
}

// Supersede ends an open transaction whose place another one has taken, unless its apply was begun.
func (r *Runner) Supersede(ctx context.Context, id, by, why string) error {
	_, _, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[none], error) {
		log, err := ledger.Read(snap.Tree, id)
		if err != nil || log.Transaction().Closed || log.Applying() || log.Transaction().Status == ledger.Applied {
			return nothing(none{}, err)
		}
		s, title := r.succeeded(log, by, why)
		return recording(none{}, s, title)
	})
	return err
}

// succeeded ends a transaction whose place another one has taken.
func (r *Runner) succeeded(log *ledger.Log, by, why string) (*ledger.Stage, ledger.Title) {
	s := r.stage(log)
	s.Status(ledger.Superseded, fmt.Sprintf("superseded by %s: %s", by, why))
	s.Close()
	return s, ledger.Title{Stage: "apply", Outcome: string(ledger.Superseded), Subject: "superseded by " + by}
}

// EnterDenied records a denial that was said after a transaction was closed, and
// returns the id of the record that has it, "" where nothing new was said.
// A closed record takes nothing more: the patch is entered once more, by propose,
// which begins a transaction that proposes what the closed one in dir did.
func (r *Runner) EnterDenied(ctx context.Context, tx ledger.Transaction, from *conversation.Reader, propose func(dir fs.FS, closed *ledger.Log) (*ledger.Stage, error)) (string, ledger.Snapshot, error) {
	paths := append(transaction(tx.TransactionID), ledger.DeniedDir(tx.PatchID()), ledger.Day(r.Now()))
	return update(ctx, r, paths, func(snap ledger.Snapshot) (try[string], error) {
		g, err := r.judge(ctx, snap, tx.TransactionID, nil)
		if err != nil || !g.Transaction().Closed || len(g.denials) > 0 {
			return nothing("", err)
		}
		said, err := r.lateDenial(ctx, &g, from)
		if said == nil || err != nil {
			return nothing("", err)
		}
		dir, err := fs.Sub(snap.Tree, ledger.Dir(tx.TransactionID))
		if err != nil {
			return nothing("", err)
		}
		s, err := propose(dir, g.log)
		if err != nil {
			return nothing("", err)
		}
		g.log = s.Log
		r.record(s, &g, *said, g.talk.Known(said.Author), nil) // a denial needs no signature
		g.Verdict = g.verdict(ctx, g.at)
		r.recordVerdict(s, g)
		entered := s.Log.Transaction()
		return recording(entered.TransactionID, s, ledger.Title{Stage: "review", Outcome: string(entered.Status), Subject: entered.Notes})
	})
}

// lateDenial is the first denial of a closed transaction's patch that counts, nil
// for none.
func (r *Runner) lateDenial(ctx context.Context, g *Gated, from *conversation.Reader) (*approval.Said, error) {
	var err error
	if g.talk, err = from.About(ctx, g.Ledger.Tree, g.log); err != nil {
		return nil, err
	}
	if g.rules, err = r.rulesFor(ctx, g.Ledger.Tree, *g); err != nil {
		return nil, err
	}
	g.head = r.headOf(ctx, *g)
	for _, said := range g.talk.Said() {
		if decision, _ := said.Decision(); decision != ledger.Deny || said.Void != "" || said.Author.ID == "" {
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
