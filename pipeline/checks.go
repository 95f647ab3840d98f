package pipeline

import (
	"context"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// checker runs checks with what is known.
func (r *Runner) checker() checks.Checker {
	return checks.Checker{Repo: r.Repo, Commands: r.Commands, Results: r.Results, Sandbox: r.Sandbox, Secrets: r.Secrets, Ran: r.ran}
}

// check runs the checks on the tree that a change makes of its base, before
// anything is written: commands in the sandbox, on a copy.
func (r *Runner) check(ctx context.Context, g Judgement, p *prepared, dryRun bool) error {
	base, err := r.Repo.Tree(ctx, p.Base)
	if err != nil {
		return err
	}
	build := func() (string, error) {
		if p.Commit != "" {
			return p.Commit, nil
		}
		return r.builder().Build(ctx, p.Change, "", "")
	}
	after := map[string]*patch.File{}
	for _, f := range p.Set.Files() {
		after[f.Path] = f.After
	}
	read := func(path string, _ *patch.File) (*patch.File, error) {
		if f, ok := after[path]; ok {
			return f, nil
		}
		return patch.Lookup(base, path)
	}
	asked, err := checks.ReadAsked(g.Ledger.Tree, g.Transaction())
	if err != nil {
		return err
	}
	if p.checked, err = r.checker().Check(ctx, g.rules.Policy, asked, read, build); err != nil {
		return err
	}
	p.known.ran = p.checked.Ran
	found := checks.Failures(p.checked.Results)
	if len(found) == 0 {
		return nil
	}
	failed := &ChecksError{g.Transaction().TransactionID, found}
	if dryRun || len(p.checked.Runs) == 0 {
		return failed
	}
	return r.recordFailed(ctx, failed, p.checked)
}

// checkApplied runs the checks on what was applied.
func (r *Runner) checkApplied(ctx context.Context, snap writing.Snapshot, log *ledger.Log, read checks.ReadFile) (checks.Done, error) {
	g := Judgement{Ledger: snap, log: log, history: true}
	start, _, _ := log.DecidedAt()
	begun := log.Payloads()[start].(*ledger.ApplyStart)
	var err error
	if g.rules, err = recorded(snap.Tree, log, begun.Policy); err != nil {
		return checks.Done{}, err
	}
	if g.denials, err = ledger.Denials(snap.Tree, log.Transaction().PatchID()); err != nil {
		return checks.Done{}, err
	}
	at, err := log.Time(start)
	if err != nil {
		return checks.Done{}, err
	}
	g.Verdict = g.verdict(ctx, at)
	asked, err := checks.ReadAsked(snap.Tree, log.Transaction())
	if err != nil {
		return checks.Done{}, err
	}
	return r.checker().Check(ctx, g.rules.Policy, asked, read, func() (string, error) {
		if done := ledger.Last[*ledger.ApplyComplete](log); done.CommitAfter != "" {
			return done.CommitAfter, nil
		}
		set, err := r.Source().On(ctx, snap.Tree, log.Transaction(), begun.BaseCommit)
		if err != nil {
			return "", err
		}
		return r.builder().Build(ctx, effect.Change{Log: log, Verdict: g.Verdict, Set: set, Base: begun.BaseCommit}, "", "")
	})
}

// recordFailed records an apply that its checks refused before it began.
func (r *Runner) recordFailed(ctx context.Context, failed *ChecksError, done checks.Done) error {
	_, _, err := Update(ctx, r, Paths(failed.ID), func(snap writing.Snapshot) (Try[none], error) {
		g, err := r.judge(ctx, snap, failed.ID, nil)
		if err != nil {
			return Nothing(none{}, err)
		}
		if g.Applying() || g.Transaction().Status != ledger.Proposed {
			return Nothing(none{}, nil)
		}
		s := r.Stage(g.log)
		done.Record(s, r.Secrets, "before")
		s.Status(ledger.Failed, r.OneLine(failed.Violations[0].Message, 300))
		return Recording(none{}, s, writing.Title{Stage: "apply", Outcome: string(ledger.Failed), Subject: "not begun: " + failed.Violations[0].Message})
	})
	if err != nil {
		return err
	}
	return failed
}
