package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// begin records apply/start on a state that is still approved, by the same Policy. An apply that
// was cut off, as resumed says, is taken up under its own id. The target notes
// the apply first, so that a crash is taken up where it was.
func (r *Runner) begin(ctx context.Context, to effect.Effect, id string, p prepared, resumed bool, from *forge.PullReader) (ledger.ApplyStart, error) {
	if len(p.checked.Runs) > 0 {
		from.Forget()
	}
	start, _, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[ledger.ApplyStart], error) {
		g, err := r.judge(ctx, snap, id, from)
		if err == nil {
			err = g.Err()
		}
		if err == nil && g.rules.Policy.Sum() != p.checked.PolicySHA256 {
			err = ErrPolicyChanged
		}
		if err != nil {
			return Nothing(ledger.ApplyStart{}, err)
		}
		open, resuming := g.log.OpenApply()
		if tx := g.Transaction(); resuming != resumed || tx.Closed || tx.Status == ledger.Applied {
			return Nothing(open, writing.ErrMoved) // another run was faster
		}
		if resuming {
			return Nothing(open, nil)
		}
		s, start, err := r.starting(ctx, g, to, p)
		if err != nil {
			return Nothing(start, err)
		}
		undo, err := to.Begin(start)
		if err != nil {
			return Nothing(start, err)
		}
		place := start.Target
		if place == effect.Worktree {
			place = "the working tree"
		}
		done, err := Recording(start, s, writing.Title{Stage: "apply", Outcome: "started", Subject: "writing " + ledger.Plural(len(start.Files), "file", "files") + " to " + place})
		done.Undo = undo
		return done, err
	})
	return start, err
}

// starting is the stage that ends with apply/start.
func (r *Runner) starting(ctx context.Context, g Judgement, to effect.Effect, p prepared) (s *writing.Stage, start ledger.ApplyStart, err error) {
	tx := g.Transaction()
	// The time is the verdict's, so that an approval cannot expire between.
	s = writing.NewStage(g.log, g.at, r.Secrets)
	err = r.recordDecisions(ctx, s, &g) // what was said while the checks ran
	if err == nil {
		err = g.Err()
	}
	if err != nil {
		return nil, start, err
	}
	r.recordVerdict(ctx, s, g)
	g.rules.Note(s)
	verdict := r.onto(ctx, g, to, p.Base).onRecord(ctx, s)
	if verdict.State != approval.Approved {
		return nil, start, &PendingError{tx.TransactionID, verdict, tx.PullRequest()}
	}
	p.checked.Record(s, r.Secrets, "before")
	start = ledger.ApplyStart{
		TransactionID: tx.TransactionID, ApplyID: fmt.Sprintf("apply_%d", len(ledger.Of[*ledger.ApplyStart](g.log))+1),
		PatchIDs: []string{tx.PatchID()}, Target: to.Target(), BaseCommit: p.Base,
		Approvals: verdict.Approvals(), Policy: g.rules.ref(),
	}
	for _, f := range p.Set.Files() {
		start.Files = append(start.Files, f.Path)
	}
	s.Event(&start)
	return s, start, nil
}

// baseChanged records that the base of an approved change is gone. Where the
// transaction has gone on since that was found, it may be the change itself that
// was made: ErrMoved says to look again.
func (r *Runner) baseChanged(ctx context.Context, g Judgement, why *SupersededError) error {
	_, _, err := Update(ctx, r, Paths(why.ID), func(snap writing.Snapshot) (Try[none], error) {
		log, err := lookup.Read(snap.Tree, why.ID)
		if err != nil {
			return Nothing(none{}, err)
		}
		if len(log.Events()) != len(g.log.Events()) {
			return Nothing(none{}, writing.ErrMoved)
		}
		s := r.Stage(log)
		s.Status(ledger.Superseded, r.OneLine("the base changed: "+escape.QuoteList(why.Files), 300))
		s.Close()
		return Recording(none{}, s, writing.Title{Stage: "apply", Outcome: string(ledger.Superseded), Subject: "superseded, the base changed: " + escape.QuoteList(why.Files)})
	})
	if err != nil {
		return err
	}
	return why
}

// An applyDoc is the artifact countersign/apply/1.
type applyDoc struct {
	Schema     string             `json:"schema"`
	Tool       string             `json:"tool"`
	Actor      ledger.Actor       `json:"actor"`
	ApplyID    string             `json:"apply_id"`
	Target     string             `json:"target"`
	BaseCommit string             `json:"base_commit"`
	Result     ledger.ApplyResult `json:"apply_result"`
}

// finish records what came of an apply. ErrMoved says that another run which took
// up the same one has told its end: what that means is for the caller to see.
func (r *Runner) finish(ctx context.Context, id string, start ledger.ApplyStart, res ledger.ApplyResult, done effect.Written) (writing.Snapshot, error) {
	_, after, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[none], error) {
		log, err := lookup.Read(snap.Tree, id)
		if err != nil {
			return Nothing(none{}, err)
		}
		if open, ok := log.OpenApply(); !ok || open.ApplyID != start.ApplyID {
			return Nothing(none{}, writing.ErrMoved)
		}
		s := r.Stage(log)
		success := res.Outcome == ledger.OutcomeSuccess
		artifact := s.Artifact("apply", applyDoc{"countersign/apply/1", r.Tool, r.Actor, start.ApplyID, start.Target, start.BaseCommit, res})
		s.Event(&ledger.ApplyComplete{
			TransactionID: id, ApplyID: start.ApplyID, Success: success, Outcome: string(res.Outcome),
			ApplyArtifact: artifact, Target: start.Target, CommitBefore: done.Before, CommitAfter: done.After,
		})
		r.recordState(s, success)
		if success {
			s.Result(res)
		}
		subject := string(res.Outcome) + ", " + ledger.Plural(res.Summary.Succeeded, "file", "files") + " written and read back"
		return Recording(none{}, s, writing.Title{Stage: "apply", Outcome: string(res.Outcome), Subject: subject})
	})
	return after, err
}

// recordState moves the transaction on; a failed apply may be tried again.
func (r *Runner) recordState(s *writing.Stage, success bool) {
	tx := s.Log.Transaction()
	if !success {
		if tx.Status == ledger.Proposed {
			s.Status(ledger.Failed, "the apply failed")
		}
		return
	}
	item, _ := writing.FileChange(s.Log)
	meta := *item.Item.Metadata
	meta.Applied = true
	item.Item.Changes = slices.Clone(item.Item.Changes)
	for i := range item.Item.Changes {
		item.Item.Changes[i].UnifiedDiff = "" // the upsert changes nothing there
	}
	item.Item.Metadata, item.Item.Status, item.Item.Op = &meta, ledger.ItemCompleted, "upsert"
	s.Event(&item)
	s.Status(ledger.Applied, "every file was written and read back")
}

// abandon ends an apply that was cut off and whose patch was denied since: what
// is on disk is recorded as it is, nothing more is written, and the transaction
// is closed as denied.
func (r *Runner) abandon(ctx context.Context, to effect.Effect, g Judgement) error {
	open, applying := g.log.OpenApply()
	if !applying {
		return nil
	}
	if err := to.CanResume(open); err != nil {
		return err
	}
	if err := r.giveUp(ctx, to, g, "the patch was denied"); err != nil {
		return err
	}
	_, err := r.Gate(ctx, g.Transaction().TransactionID)
	return err
}

// giveUp records an open apply as what is found on disk.
func (r *Runner) giveUp(ctx context.Context, to effect.Effect, g Judgement, why string) error {
	open, _ := g.log.OpenApply()
	tx := g.Transaction()
	set, err := r.Source().On(ctx, g.Ledger.Tree, tx, open.BaseCommit)
	if err != nil {
		return err
	}
	done, err := to.Found(ctx, set.Files(), open, why)
	if err != nil {
		return err
	}
	res := effect.NewResult(".", tx.Pointers.Proposal.Source(), false, done.Operations)
	_, err = r.finish(ctx, tx.TransactionID, open, res, done)
	if err != nil && !errors.Is(err, writing.ErrMoved) { // ended by another run, which is as good
		return err
	}
	return to.End(open)
}
