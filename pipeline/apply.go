package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// An ApplyOutcome is what Apply did. Already: an earlier run applied this change, and Result is
// that run's. Resumed: an earlier run was cut off, and this one has finished it. Commit is the
// commit that was made, "" for files that were not committed; Branch has those that were.
type ApplyOutcome struct {
	Result  ledger.ApplyResult
	Ledger  writing.Snapshot // as the apply left it
	Commit  string
	Branch  string
	Already bool
	Resumed bool
	Learnt  Known // of the patch, and what its checks came to
}

// Apply carries out an approved change and nothing else: the denials,
// approvals, patch bytes and base hashes are checked again, the intent is
// recorded, the change is made and read back, and the outcome is recorded.
// After a crash it finishes what was begun.
//
// A refusal returns an outcome REFUSED together with the error that says why.
func (r *Runner) Apply(ctx context.Context, g Judgement, o ApplyOptions) (ApplyOutcome, error) {
	from := r.Reader()
	g, now, err := r.again(ctx, g, o, from)
	if err != nil {
		return ApplyOutcome{Result: refusal(err, o.DryRun)}, err
	}
	if mode, err := r.checker().Mode(g.rules.Policy); err != nil {
		return ApplyOutcome{}, err
	} else if (mode == policy.ReadOnly || g.Transaction().SandboxPolicy.Type == string(policy.ReadOnly)) && !o.DryRun {
		return ApplyOutcome{Result: refusal(checks.ErrReadOnly, false)}, checks.ErrReadOnly
	}
	to, err := r.target(ctx, g, o, from)
	if err != nil {
		return ApplyOutcome{Result: refusal(err, o.DryRun)}, err
	}
	if !o.DryRun {
		unlock, err := r.occupy(ctx, to, o, from)
		if err != nil {
			return ApplyOutcome{}, err
		}
		defer unlock()
	}
	id := g.Transaction().TransactionID
	// A branch that moves under us is tried again on its new tip.
	for attempt := 1; ; attempt++ {
		snap, err := r.Ledger(ctx, Paths(id)...)
		if err != nil {
			return ApplyOutcome{Learnt: r.Known()}, err
		}
		log, judged := g.log, now && attempt == 1 && snap.Tip == g.Ledger.Tip && r.Now().Sub(g.at) <= longWait
		if !judged {
			if log, err = lookup.Read(snap.Tree, id); err != nil {
				return ApplyOutcome{Learnt: r.Known()}, err
			}
		}
		if out, err := already(snap, log); out.Already || err != nil {
			if out.Already && !o.DryRun { // a process that was killed after it had told the ledger left its note
				for _, start := range ledger.Of[*ledger.ApplyStart](log) {
					err = errors.Join(err, to.End(*start))
				}
			}
			if out.Already && o.Checkout != nil && out.Commit == "" {
				start := ledger.Last[*ledger.ApplyStart](log)
				err = errors.Join(err, &code.UncommittableError{Why: id + " is applied already, without --commit", Written: start.Files})
			}
			out.Learnt = r.Known() // by a try before, perhaps
			return out, err
		}
		if !judged {
			if g, err = r.judge(ctx, snap, id, from); err != nil {
				return ApplyOutcome{Result: refusal(err, o.DryRun), Learnt: r.Known()}, err
			}
		}
		out, err := r.apply(ctx, to, g, snap, o.DryRun, from)
		r = r.With(out.Learnt)
		out.Learnt = r.Known()
		if !errors.Is(err, writing.ErrMoved) || attempt == maxAttempts {
			return out, err
		}
	}
}

// longWait is after how long a pull request is read again.
const longWait = 5 * time.Second

// occupy keeps others away from where a change goes.
func (r *Runner) occupy(ctx context.Context, to effect.Effect, o ApplyOptions, from *forge.PullReader) (leave func(), err error) {
	if o.Place == nil {
		return to.Lock(ctx)
	}
	asked := r.Now()
	leave, err = o.Place(ctx, to.Target())
	if r.Now().Sub(asked) > longWait {
		from.Forget()
	}
	return leave, err
}

// again reads the pull request once more, so that an approval that is gone, and
// a denial that has come, are known before anything is done. now says whether the
// verdict was made here.
func (r *Runner) again(ctx context.Context, g Judgement, o ApplyOptions, from *forge.PullReader) (_ Judgement, now bool, err error) {
	tx := g.Transaction()
	switch {
	case tx.GateOnly():
		return g, false, gateOnly(tx)
	case tx.PullRequest() == 0 || tx.Closed || o.DryRun:
		return g, false, nil
	}
	g, err = r.GateFrom(ctx, tx.TransactionID, from)
	return g, true, err
}

// already returns the outcome of a transaction that was applied before.
func already(snap writing.Snapshot, log *ledger.Log) (ApplyOutcome, error) {
	tx := log.Transaction()
	if tx.GateOnly() || tx.Status != ledger.Applied && tx.Status != ledger.Completed {
		return ApplyOutcome{}, nil
	}
	res, commit, err := Judgement{Ledger: snap, log: log}.Result()
	if res == nil || err != nil {
		return ApplyOutcome{}, err
	}
	return ApplyOutcome{Result: *res, Ledger: snap, Commit: commit, Already: true}, nil
}

// ended refuses a transaction that takes no more events; of a denied one the
// verdict says so.
func ended(tx ledger.Transaction) error {
	switch {
	case tx.Status == ledger.Superseded:
		return &SupersededError{ID: tx.TransactionID, PullRequest: tx.PullRequest()}
	case tx.Closed && tx.Status != ledger.Denied:
		return ClosedError(tx.TransactionID, tx.Status)
	}
	return nil
}

// apply goes on with a transaction that is still to be applied.
func (r *Runner) apply(ctx context.Context, to effect.Effect, g Judgement, snap writing.Snapshot, dryRun bool, from *forge.PullReader) (ApplyOutcome, error) {
	var p prepared
	refuse := func(err error) (ApplyOutcome, error) {
		return ApplyOutcome{Result: refusal(err, dryRun), Ledger: snap, Learnt: p.known}, err
	}
	if err := ended(g.Transaction()); err != nil {
		return refuse(err)
	}
	if err := g.Err(); err != nil {
		if g.Verdict.State == approval.Denied && !dryRun {
			err = errors.Join(err, r.abandon(ctx, to, g))
		}
		return refuse(err)
	}
	p, err := r.approvedPatch(ctx, to, g, snap)
	r = r.With(p.known)
	if superseded, ok := err.(*SupersededError); ok && !dryRun {
		return refuse(r.baseChanged(ctx, g, superseded))
	}
	if err == nil {
		err = to.Ready(ctx, &p.Change, g.rules.Policy.Apply.Sign)
	}
	if err == nil {
		err = r.check(ctx, g, &p, dryRun)
	}
	if err != nil {
		return refuse(err)
	}
	if dryRun {
		return ApplyOutcome{Result: p.result(true, effect.Predict(p.Set.Files())), Ledger: snap, Learnt: p.known}, nil
	}
	return r.With(p.known).carryOut(ctx, to, g, p, from)
}

// result is the ApplyResult of these operations. A file that is not what was
// written fails the whole, whatever became of the others.
func (p prepared) result(dryRun bool, ops []ledger.Operation) ledger.ApplyResult {
	res := effect.NewResult(".", p.source, dryRun, ops)
	if slices.ContainsFunc(ops, func(o ledger.Operation) bool { return o.Error == effect.Mismatch }) {
		res.Outcome = ledger.OutcomeFailed
	}
	return res
}

// refusal is the ApplyResult of an apply that was not begun.
func refusal(err error, dryRun bool) ledger.ApplyResult {
	var files []string
	switch e := err.(type) {
	case *effect.DirtyError:
		files = e.Files
	case *SupersededError:
		files = e.Files
	}
	var vs []canon.Violation
	for _, file := range files {
		vs = append(vs, canon.Violation{RuleID: "BASE", Path: file, Message: "is not as the approved change found it"})
	}
	var failed *ChecksError
	if errors.As(err, &failed) {
		vs = failed.Violations
	}
	if vs == nil {
		vs = []canon.Violation{{RuleID: "GATE", Message: err.Error()}}
	}
	return effect.RefuseResult(".", dryRun, err.Error(), vs)
}

// carryOut records the intent, makes the change, and records the outcome.
func (r *Runner) carryOut(ctx context.Context, to effect.Effect, g Judgement, p prepared, from *forge.PullReader) (ApplyOutcome, error) {
	id := g.Transaction().TransactionID
	resumed := g.Applying()
	start, err := r.begin(ctx, to, id, p, resumed, from)
	if err != nil {
		return ApplyOutcome{Result: refusal(err, false), Learnt: p.known}, err
	}
	done := to.Write(ctx, p.Change)
	res := p.result(false, done.Operations)
	after, err := r.finish(ctx, id, start, res, done)
	if err == nil {
		err = to.End(start)
	}
	return ApplyOutcome{Result: res, Ledger: after, Commit: done.After, Branch: done.Branch, Resumed: resumed, Learnt: p.known}, errors.Join(err, done.Moved)
}
