package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A Gated is a transaction with its Verdict. Apply takes one, so that no change
// gets there without having been through the gate.
type Gated struct {
	Verdict      approval.Verdict
	LedgerCommit string
	// Recorded tells whether this call added anything to the ledger.
	Recorded bool
	log      *ledger.Log
}

// Transaction is the state that the Verdict is about.
func (g Gated) Transaction() ledger.Transaction { return g.log.Transaction() }

// Err is nil when the verdict is approved, else a *PendingError or *DeniedError.
func (g Gated) Err() error {
	id := g.Transaction().TransactionID
	switch g.Verdict.State {
	case approval.Approved:
		return nil
	case approval.Denied:
		return &DeniedError{ID: id, PatchID: g.Transaction().PatchID(), Reason: g.Verdict.Reason}
	}
	return &PendingError{id, g.Verdict}
}

// Gate adds up the decisions, opens the requests that are missing, and records
// the verdict where it moves the transaction on.
func (r *Runner) Gate(ctx context.Context, id string) (Gated, error) {
	var g Gated
	var err error
	g.LedgerCommit, err = r.update(ctx, transaction(id), func(snap Snapshot) (*ledger.Entry, error) {
		if g, err = r.judge(snap, id); err != nil || g.Transaction().Closed {
			return nil, err
		}
		before := len(g.log.Events())
		s := ledger.NewStage(g.log, r.Now())
		r.settle(s, g.Verdict)
		if g.Recorded = len(g.log.Events()) > before; !g.Recorded {
			return nil, nil
		}
		return s.Entry(ledger.Title{Stage: "gate", Outcome: string(g.Verdict.State), Subject: gateSubject(g.Verdict)}, false)
	})
	return g, err
}

func gateSubject(v approval.Verdict) string {
	if v.State == approval.Pending {
		return "approval asked for (" + v.Reason + ")"
	}
	return string(v.State) + " (" + v.Reason + ")"
}

// judge reads a transaction and decides on it. For one that was applied or
// closed the verdict is history: it is computed, and changes nothing.
//
// A record that does not verify is no basis for a verdict: the first finding
// comes back as a *ledger.CorruptError.
func (r *Runner) judge(snap Snapshot, id string) (Gated, error) {
	log, err := ledger.Read(snap.Tree, id)
	if err != nil {
		return Gated{}, err
	}
	found, err := checkRecord(snap.Tree, id)
	if err != nil {
		return Gated{}, err
	}
	if len(found) > 0 {
		return Gated{}, &ledger.CorruptError{ID: id, Err: fmt.Errorf("%s %s: %s", found[0].RuleID, found[0].Path, found[0].Message)}
	}
	patchID := log.Transaction().PatchID()
	if !canon.IsHex64(patchID) {
		return Gated{}, &ledger.CorruptError{ID: id, Err: fmt.Errorf("it has no proposal")}
	}
	denials, err := ledger.Denials(snap.Tree, patchID)
	if err != nil {
		return Gated{}, err
	}
	return Gated{Verdict: approval.Decide(r.Policy, log, denials), log: log}, nil
}

// settle records what a verdict means for a transaction that is still open.
func (r *Runner) settle(s *ledger.Stage, v approval.Verdict) {
	status := s.Log.Transaction().Status
	switch v.State {
	case approval.Pending:
		r.request(s, v)
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
			s.Status(ledger.Denied, ledger.OneLine(v.Reason, 300))
			s.Close()
		}
	}
}

var canBeDenied = map[ledger.Status]bool{ledger.Proposed: true, ledger.Awaiting: true, ledger.Failed: true}

// request opens as many requests as approvals are missing.
func (r *Runner) request(s *ledger.Stage, v approval.Verdict) {
	open := s.Log.OpenRequests()
	for _, need := range v.Needs {
		missing := need.Required - need.Approved
		for _, q := range open {
			if q.Fingerprint == need.Fingerprint {
				missing--
			}
		}
		for range missing {
			r.ask(s, need)
		}
	}
}

func (r *Runner) ask(s *ledger.Stage, need approval.Need) string {
	item, _ := s.Log.FileChange()
	tx := s.Log.Transaction()
	id := fmt.Sprintf("req_%d", len(ledger.Of[*ledger.ApprovalRequest](s.Log))+1)
	s.Event(&ledger.ApprovalRequest{
		TransactionID: tx.TransactionID, TurnID: item.TurnID, ApprovalRequestID: id, ItemID: item.Item.ID,
		Kind: need.Kind, Fingerprint: need.Fingerprint, Prompt: "Apply " + plural(len(item.Item.Changes), "change", "changes") + "?",
	})
	return id
}

// A Ruling is one human's decision, taken here and now.
type Ruling struct {
	Decision    ledger.Decision
	Fingerprint string // "" for the patch's own
	Reason      string
	Kind        string // where it was taken: "local"
}

// Decide records a ruling and what follows from it.
func (r *Runner) Decide(ctx context.Context, id string, ruling Ruling) (Gated, error) {
	ruling.Reason = ledger.OneLine(ruling.Reason, 500)
	var g Gated
	var err error
	g.LedgerCommit, err = r.update(ctx, transaction(id), func(snap Snapshot) (*ledger.Entry, error) {
		if g, err = r.judge(snap, id); err != nil {
			return nil, err
		}
		done, err := r.refuseRuling(g, ruling)
		if done || err != nil {
			return nil, err
		}
		s := ledger.NewStage(g.log, r.Now())
		if err := r.rule(s, snap, g.Verdict.Needs[0], ruling); err != nil {
			return nil, err
		}
		denials, err := ledger.Denials(snap.Tree, g.log.Transaction().PatchID())
		if err != nil {
			return nil, err
		}
		g.Verdict, g.Recorded = approval.Decide(r.Policy, g.log, denials), true
		r.settle(s, g.Verdict)
		return s.Entry(ledger.Title{Stage: string(ruling.Decision), Outcome: string(g.Verdict.State), Subject: r.rulingSubject(ruling)}, false)
	})
	return g, err
}

// refuseRuling says whether a ruling cannot be taken, or need not be.
func (r *Runner) refuseRuling(g Gated, ruling Ruling) (done bool, err error) {
	tx := g.Transaction()
	if want := g.Verdict.Needs[0].Fingerprint; ruling.Fingerprint != "" && ruling.Fingerprint != want {
		return false, &UndecidedError{fmt.Sprintf("%s asks for no decision on %s", tx.TransactionID, ledger.OneLine(ruling.Fingerprint, 100))}
	}
	if g.Verdict.State == approval.Denied {
		if ruling.Decision == ledger.Deny {
			return true, nil
		}
		return false, g.Err()
	}
	if tx.Closed || tx.Status == ledger.Applied {
		return false, &ClosedError{tx.TransactionID, tx.Status}
	}
	if !r.Policy.Approvals.Local {
		return false, &UndecidedError{"the Policy does not allow local decisions"}
	}
	if ruling.Decision == ledger.Deny {
		return false, nil
	}
	voted := slices.ContainsFunc(g.Verdict.Decisions, func(j approval.Judged) bool {
		return j.Counted && j.Author.ID == r.Actor.ID
	})
	return voted || g.Verdict.State == approval.Approved, nil
}

func (r *Runner) rule(s *ledger.Stage, snap Snapshot, need approval.Need, ruling Ruling) error {
	tx := s.Log.Transaction()
	request := r.openRequest(s, need)
	body := "/" + string(ruling.Decision) + " " + need.Fingerprint
	if ruling.Reason != "" {
		body += " " + ruling.Reason
	}
	decision := &ledger.ApprovalDecision{
		TransactionID: tx.TransactionID, ApprovalRequestID: request, Decision: ruling.Decision,
		Fingerprint: need.Fingerprint, Reason: ruling.Reason,
		Source: ledger.Source{
			Kind: ruling.Kind, Author: r.Actor, Permission: "local", Commit: tx.Pointers.Proposal.BaseCommit,
			BodySHA256: canon.Sum([]byte(body)), CreatedAt: ledger.FormatTime(r.Now()),
		},
	}
	s.Event(decision)
	if ruling.Decision != ledger.Deny {
		return nil
	}
	earlier, err := ledger.Denials(snap.Tree, tx.PatchID())
	if err != nil || len(earlier) > 0 {
		return err // the index is write-once
	}
	s.Denied(ledger.Denial{
		Fingerprint: need.Fingerprint, Kind: need.Kind, TransactionID: tx.TransactionID,
		Author: r.Actor, Reason: ruling.Reason, DeniedAt: decision.Source.CreatedAt,
	})
	return nil
}

// openRequest returns a request that waits for an answer on the need, and
// opens one where there is none: a denial always finds one.
func (r *Runner) openRequest(s *ledger.Stage, need approval.Need) string {
	if s.Log.Transaction().Status == ledger.Proposed && need.Approved == 0 {
		defer s.Status(ledger.Awaiting, "approval asked for")
	}
	for _, q := range s.Log.OpenRequests() {
		if q.Fingerprint == need.Fingerprint {
			return q.ApprovalRequestID
		}
	}
	return r.ask(s, need)
}

func (r *Runner) rulingSubject(ruling Ruling) string {
	said := map[ledger.Decision]string{ledger.Approve: "approved", ledger.Deny: "denied"}[ruling.Decision]
	s := said + " by " + ledger.OneLine(r.Actor.Login, 60)
	if ruling.Reason != "" {
		s += ": " + ruling.Reason
	}
	return s
}
