package session

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// Style is how a report looks on the console.
func Style(c *console.Console) report.Style {
	return report.Style{Colour: c.Colourful(), Zone: c.Now().Location()}
}

// Style is the console's, with the way to the working tree.
func (s *Session) Style() report.Style {
	style := Style(s.Console)
	style.Top = s.top()
	return style
}

// top is the working tree's top directory as it is typed where the command was, "" for that directory itself.
func (s *Session) top() string {
	tree := s.Repo.Worktree() // "" of a bare one
	if tree == "" || filepath.IsAbs(cmp.Or(s.Beside, s.Flags.Dir)) {
		return tree
	}
	here, err := filepath.Abs(s.From("."))
	for _, dir := range []*string{&here, &tree} {
		if real, realErr := filepath.EvalSymlinks(*dir); realErr == nil {
			*dir = real
		}
	}
	rel, relErr := filepath.Rel(here, tree)
	switch {
	case err != nil || relErr != nil:
		return tree
	case rel == ".":
		return ""
	}
	return rel
}

// FirstTime reports whether this clone is told something for the first time, which it then was.
func (s *Session) FirstTime(what string) bool {
	f, err := os.OpenFile(filepath.Join(s.Repo.StateDir(), "told-"+what), os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		_ = f.Close()
	}
	return !errors.Is(err, os.ErrExist)
}

// Long prints what is longer than the screen of a terminal through the pager that the repository's settings may name.
func (s *Session) Long(text secret.Redacted) error { return s.LongWith(s.Repo.Config, text) }

// Report describes a transaction as a stage left it.
func (s *Session) Report(ctx context.Context, g pipeline.Judgement) (report.Report, error) {
	diff, err := g.Diff()
	if err != nil {
		return report.Report{}, err
	}
	risks, err := review.Risks(ctx, g)
	if err != nil {
		return report.Report{}, err
	}
	rep := report.New(g.Log(), diff, &g.Verdict)
	rep.Risks, rep.Offsets = &risks, g.Offsets()
	rep.Moved, _ = g.Moved(ctx) // of what is not here, as in a partial clone, nothing is told before it is applied
	came, err := g.Provenances()
	if err != nil {
		return report.Report{}, err
	}
	rep.Proposals = report.Proposals(came)
	rep.LedgerRef, rep.LedgerCommit = s.Flags.LedgerRef, g.Ledger.Tip
	at, elsewhere := s.KeptAt(g.Ledger.Tip)
	if elsewhere {
		rep.LedgerWeb = cmp.Or(s.LinksOf(at).Web, at)
	}
	rep.Record = s.LinksOf(at).Folder(g.Ledger.Tip, ledger.Dir(rep.TransactionID))
	return rep, nil
}

// ReportResult is Report with what an earlier apply came to.
func (s *Session) ReportResult(ctx context.Context, g pipeline.Judgement) (report.Report, error) {
	rep, err := s.Report(ctx, g)
	if err == nil {
		rep.ApplyResult, rep.AppliedCommit, err = g.Result()
	}
	return rep, err
}

// KeptAt is the address of the repository that is known to have a commit of the remote's ledger, "" for none, and
// whether that is another than the remote.
func (s *Session) KeptAt(tip string) (address string, elsewhere bool) {
	remote := s.Repo.Config.RemoteURL(s.Flags.Remote)
	address = s.Store.PushedTo(remote, tip)
	return address, address != "" && address != remote
}

// Shown is a transaction as show has it: with what comes next, and the branch of its base.
func (s *Session) Shown(ctx context.Context, snap writing.Snapshot, id string) (report.Report, error) {
	g, err := s.Runner.History(ctx, snap, id)
	if err != nil {
		return report.Report{}, err
	}
	rep, err := s.ReportResult(ctx, g)
	if err == nil {
		rep.Next, rep.BaseBranch = rep.NextStep(s.Again), s.Repo.BranchWith(ctx, rep.BaseCommit)
	}
	return rep, err
}

// ReportRun is report with what a run came to.
func (s *Session) ReportRun(ctx context.Context, o pipeline.Outcome) (report.Report, error) {
	rep, err := s.Report(ctx, o.Judgement)
	if done := o.Applied; done != nil && done.Result.Outcome != "" {
		rep.ApplyResult, rep.AppliedCommit, rep.AppliedBranch = &done.Result, done.Commit, done.Branch
	}
	if o.Validated != nil {
		rep.Validation = &o.Validated.Report
	}
	return rep, err
}

// Tell prints what a command came to: the report with --json, else a line and what to type next, or with
// --quiet the id. by is whose decision was recorded just now, "" for none.
func (s *Session) Tell(rep report.Report, by string) (console.Outcome, error) {
	out := console.Outcome{Transaction: rep.TransactionID, Shown: true, Verdict: rep.Verdict}
	switch {
	case s.Flags.JSON:
		return out, s.PrintJSON(rep)
	case s.Flags.Quiet:
		return out, s.Print(rep.TransactionID + "\n")
	case rep.AppliedOutcome() == "" && rep.ApplyResult != nil && !rep.Waits(): // refused: the error says why
		return out, nil
	}
	line, clean, err := console.Cleanly(s.Console, rep)
	if err != nil {
		return out, err
	}
	return out, console.Emit(s.Stdout, line.Show(func(string) string { return clean.Result(by, s.Again, s.Columns(), s.Style()) }))
}
