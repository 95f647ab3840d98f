package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/rule"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// TargetWorktree is the target of an apply to the checked-out files.
const TargetWorktree = "worktree"

// An ApplyOutcome is what Apply did. Already says that an earlier apply had
// done it, and Result is that one's.
type ApplyOutcome struct {
	Result       result.Result
	LedgerCommit string
	Already      bool
}

// Apply carries out an approved change in the working tree and nothing else:
// the denials, approvals, patch bytes and base hashes are checked again, the
// intent is recorded, the files are written and read back, and the outcome is
// recorded. After a crash it finishes what was begun. dryRun writes nothing,
// neither files nor ledger, and predicts the same result.
//
// A refusal returns an outcome REFUSED together with the error that says why.
func (r *Runner) Apply(ctx context.Context, g Gated, dryRun bool) (ApplyOutcome, error) {
	if r.Worktree == nil {
		return ApplyOutcome{}, &NoWorktreeError{}
	}
	if !dryRun {
		unlock, err := r.Worktree.Lock(ctx)
		if err != nil {
			return ApplyOutcome{}, err
		}
		defer unlock()
	}
	id := g.Transaction().TransactionID
	snap, err := r.Store.Snapshot(ctx)
	if err != nil {
		return ApplyOutcome{}, fmt.Errorf("reading the ledger: %w", err)
	}
	if done, err := r.already(snap, id); done != nil || err != nil {
		return deref(done), err
	}
	if g, err = r.judge(snap, id); err != nil {
		return ApplyOutcome{}, err
	}
	return r.apply(ctx, g, snap, dryRun)
}

func deref(o *ApplyOutcome) ApplyOutcome {
	if o == nil {
		return ApplyOutcome{}
	}
	return *o
}

// already returns the outcome of a transaction that was applied before, and
// refuses one that ended otherwise.
func (r *Runner) already(snap Snapshot, id string) (*ApplyOutcome, error) {
	log, err := ledger.Read(snap.Tree, id)
	if err != nil {
		return nil, err
	}
	tx := log.Transaction()
	switch tx.Status {
	case ledger.Applied, ledger.Completed:
		raw, err := fs.ReadFile(snap.Tree, path.Join(ledger.Dir(id), ledger.ResultFile))
		if err != nil {
			return nil, fmt.Errorf("reading the earlier result: %w", err)
		}
		res, err := result.Parse(raw)
		return &ApplyOutcome{Result: res, LedgerCommit: snap.Tip, Already: true}, err
	case ledger.Superseded:
		return nil, &SupersededError{ID: id}
	}
	if tx.Closed && tx.Status != ledger.Denied {
		return nil, &ClosedError{id, tx.Status}
	}
	return nil, nil
}

// apply goes on with a transaction that is still to be applied.
func (r *Runner) apply(ctx context.Context, g Gated, snap Snapshot, dryRun bool) (ApplyOutcome, error) {
	refuse := func(err error) (ApplyOutcome, error) {
		return ApplyOutcome{Result: refusal(err, dryRun), LedgerCommit: snap.Tip}, err
	}
	if err := g.Err(); err != nil {
		return refuse(err)
	}
	set, err := r.approvedPatch(ctx, g, snap)
	if superseded, ok := err.(*SupersededError); ok && !dryRun {
		return refuse(r.supersede(ctx, superseded))
	}
	if err != nil {
		return refuse(err)
	}
	if err := r.ready(ctx, g, set); err != nil {
		return refuse(err)
	}
	if dryRun {
		return ApplyOutcome{Result: result.New(".", source(g), true, workspace.Predict(set.Files())), LedgerCommit: snap.Tip}, nil
	}
	return r.carryOut(ctx, g, set)
}

// refusal is the ApplyResult of an apply that was not begun.
func refusal(err error, dryRun bool) result.Result {
	var vs []rule.Violation
	for _, file := range refusedFiles(err) {
		vs = append(vs, rule.Violation{RuleID: "BASE", Path: file, Message: "is not as the approved change found it"})
	}
	if vs == nil {
		vs = []rule.Violation{{RuleID: "GATE", Message: err.Error()}}
	}
	return result.Refuse(".", dryRun, err.Error(), vs)
}

func refusedFiles(err error) []string {
	switch e := err.(type) {
	case *DirtyError:
		return e.Files
	case *SupersededError:
		return e.Files
	}
	return nil
}

// approvedPatch reads the approved bytes from the ledger, checks that they are
// those bytes, and puts them on the present base.
func (r *Runner) approvedPatch(ctx context.Context, g Gated, snap Snapshot) (patch.Patchset, error) {
	tx := g.Transaction()
	corrupt := func(err error) error { return &ledger.CorruptError{ID: tx.TransactionID, Err: err} }
	diff, err := storedPatch(snap.Tree, tx)
	if err != nil {
		return patch.Patchset{}, err
	}
	base, err := r.base(ctx, g)
	if err != nil {
		return patch.Patchset{}, err
	}
	if err := unchanged(base, tx); err != nil {
		return patch.Patchset{}, err
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return patch.Patchset{}, corrupt(err)
	}
	set, err := parsed.Resolve(base)
	if err != nil {
		return patch.Patchset{}, fmt.Errorf("the approved patch no longer fits: %w", err)
	}
	if set.ID() != tx.PatchID() {
		return patch.Patchset{}, corrupt(fmt.Errorf("the stored patch means another change on this base"))
	}
	return set, nil
}

// base is the tree to check against: HEAD's, or for an apply that was cut off
// the one it began on.
func (r *Runner) base(ctx context.Context, g Gated) (fs.FS, error) {
	if open, ok := g.log.OpenApply(); ok {
		return r.Repo.Tree(ctx, open.BaseCommit)
	}
	head, err := r.Repo.Head(ctx)
	if err != nil {
		return nil, err
	}
	return r.Repo.Tree(ctx, head)
}

// unchanged compares the base with what the review recorded.
func unchanged(base fs.FS, tx ledger.Transaction) error {
	e := &SupersededError{ID: tx.TransactionID}
	for _, file := range tx.Pointers.Proposal.TargetFiles {
		f, err := patch.Lookup(base, file)
		if _, unfit := err.(*patch.Error); err != nil && !unfit {
			return err
		}
		want := tx.Pointers.Proposal.BaseSHA256[file]
		if have := f.Sum(); err != nil || (have == nil) != (want == nil) || have != nil && *have != *want {
			e.Files = append(e.Files, file)
		}
	}
	if len(e.Files) > 0 {
		return e
	}
	return nil
}

// supersede records that the base of an approved change is gone.
func (r *Runner) supersede(ctx context.Context, why *SupersededError) error {
	_, err := r.update(ctx, func(snap Snapshot) (*ledger.Entry, error) {
		log, err := ledger.Read(snap.Tree, why.ID)
		if err != nil || log.Transaction().Closed {
			return nil, err
		}
		s := ledger.NewStage(log, r.Now())
		s.Status(ledger.Superseded, ledger.OneLine("the base changed: "+list(why.Files), 300))
		s.Close()
		return s.Entry(ledger.Title{Stage: "apply", Outcome: string(ledger.Superseded), Subject: "superseded, the base changed: " + list(why.Files)}, false)
	})
	if err != nil {
		return err
	}
	return why
}

// ready checks the files on disk: each as the change found it, or, where an
// apply was cut off, as the change leaves it.
func (r *Runner) ready(ctx context.Context, g Gated, set patch.Patchset) error {
	if _, resuming := g.log.OpenApply(); !resuming && g.Transaction().Status != ledger.Failed {
		return r.refuseDirty(ctx, set.Files())
	}
	states, err := r.Worktree.Inspect(set.Files())
	if err != nil {
		return err
	}
	var dirty []string
	for i, state := range states {
		if state == workspace.Other {
			dirty = append(dirty, set.Files()[i].Path)
		}
	}
	if len(dirty) > 0 {
		return &DirtyError{dirty}
	}
	return nil
}

// carryOut records the intent, writes, and records the outcome.
func (r *Runner) carryOut(ctx context.Context, g Gated, set patch.Patchset) (ApplyOutcome, error) {
	id := g.Transaction().TransactionID
	start, err := r.begin(ctx, id, set)
	if err != nil {
		return ApplyOutcome{Result: refusal(err, false)}, err
	}
	res := result.New(".", source(g), false, r.Worktree.Write(set.Files()))
	commit, err := r.finish(ctx, id, start, res)
	return ApplyOutcome{Result: res, LedgerCommit: commit}, err
}

// begin records apply/start on a state that is still approved. An apply that
// was cut off is taken up under its own id.
func (r *Runner) begin(ctx context.Context, id string, set patch.Patchset) (ledger.ApplyStart, error) {
	head, err := r.Repo.Head(ctx)
	if err != nil {
		return ledger.ApplyStart{}, err
	}
	var start ledger.ApplyStart
	_, err = r.update(ctx, func(snap Snapshot) (*ledger.Entry, error) {
		g, err := r.judge(snap, id)
		if err != nil {
			return nil, err
		}
		if err := g.Err(); err != nil {
			return nil, err
		}
		var resuming bool
		if start, resuming = g.log.OpenApply(); resuming {
			return nil, nil
		}
		if tx := g.Transaction(); tx.Closed || tx.Status == ledger.Applied {
			return nil, &ClosedError{id, tx.Status}
		}
		s := ledger.NewStage(g.log, r.Now())
		r.settle(s, g.Verdict)
		start = ledger.ApplyStart{
			TransactionID: id, ApplyID: fmt.Sprintf("apply_%d", len(ledger.Of[*ledger.ApplyStart](g.log))+1),
			PatchIDs: []string{g.Transaction().PatchID()}, Target: TargetWorktree, BaseCommit: head,
		}
		for _, f := range set.Files() {
			start.Files = append(start.Files, f.Path)
		}
		s.Event(&start)
		return s.Entry(ledger.Title{Stage: "apply", Outcome: "started", Subject: "writing " + plural(len(start.Files), "file", "files") + " to the working tree"}, false)
	})
	return start, err
}

// finish records what came of an apply.
func (r *Runner) finish(ctx context.Context, id string, start ledger.ApplyStart, res result.Result) (string, error) {
	line, err := res.Line()
	if err != nil {
		return "", err
	}
	return r.update(ctx, func(snap Snapshot) (*ledger.Entry, error) {
		log, err := ledger.Read(snap.Tree, id)
		if err != nil {
			return nil, err
		}
		s := ledger.NewStage(log, r.Now())
		success := res.Outcome == result.Success
		artifact := s.Artifact("apply", map[string]any{
			"schema": "countersign/apply/1", "tool": r.Tool, "actor": r.Actor,
			"apply_id": start.ApplyID, "target": start.Target, "base_commit": start.BaseCommit, "apply_result": res,
		})
		s.Event(&ledger.ApplyComplete{
			TransactionID: id, ApplyID: start.ApplyID, Success: success, Outcome: string(res.Outcome),
			ApplyArtifact: artifact, Target: start.Target,
		})
		r.recordState(s, success)
		if success {
			s.File(ledger.ResultFile, line)
		}
		subject := string(res.Outcome) + ", " + plural(res.Summary.Succeeded, "file", "files") + " written and read back"
		return s.Entry(ledger.Title{Stage: "apply", Outcome: string(res.Outcome), Subject: subject}, false)
	})
}

// recordState moves the transaction on; a failed apply may be tried again.
func (r *Runner) recordState(s *ledger.Stage, success bool) {
	tx := s.Log.Transaction()
	if !success {
		if tx.Status == ledger.Proposed {
			s.Status(ledger.Failed, "the apply failed")
		}
		return
	}
	item, _ := s.Log.FileChange()
	meta := *item.Item.Metadata
	meta.Applied = true
	item.Item.Metadata, item.Item.Status, item.Item.Op = &meta, "applied", "upsert"
	s.Event(&item)
	s.Status(ledger.Applied, "every file was written and read back")
}

// source names the Proposal; a plain patch has one derived from its id.
func source(g Gated) result.Source {
	id := g.Transaction().PatchID()
	return result.Source{ProposalID: "prop_" + id[:16], ProposalHash: "sha256:" + id}
}
