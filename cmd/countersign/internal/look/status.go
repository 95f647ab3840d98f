package look

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/proofs"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

func statusCommand(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say what waits, and what to type", Args: cli.NoArgs,
		Example: "  countersign status\n  countersign status --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return Status(cmd.Context(), c) },
	}
}

// Status shows what is open, and the commands that take it on.
func Status(ctx context.Context, c *console.Console) error {
	s, err := session.Open(c)
	if err != nil {
		return err
	}
	r := s.Runner
	snap, err := r.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return err
	}
	open, err := lookup.Open(snap.Tree)
	if err != nil {
		return err
	}
	rows, err := s.Queue(ctx, snap, open)
	if err != nil {
		return err
	}
	at := map[plain.State][]string{}
	for _, row := range rows {
		at[row.State] = append(at[row.State], row.TransactionID)
	}
	due, untold := proofs.Exceptions(ctx, s, s.Local)
	if c.Flags.JSON {
		doc := console.Document{"transactions": report.Documents(rows), "more": false}
		if open, overdue := explain.Unreviewed(due); untold == nil && len(open) > 0 {
			doc["exceptions"] = console.Document{"due": len(open), "overdue": overdue}
		}
		return c.PrintJSON(doc)
	}
	var steps []report.Step
	for _, all := range []struct {
		of      plain.State
		command []string
		what    string
	}{
		{plain.Waits, []string{"approve"}, "shows what waits and asks"}, {plain.Approved, []string{"run", "--all"}, "applies what is approved"},
		{plain.Unchecked, []string{"run", "--all"}, "checks what was applied"},
		{plain.CheckFailed, []string{"run", "--all"}, "tries again where a check failed"},
	} {
		switch ids := at[all.of]; {
		case len(ids) == 1:
			g, err := r.History(ctx, snap, ids[0])
			var rep report.Report
			if err == nil {
				rep, err = s.Report(ctx, g)
			}
			if err != nil {
				return err
			}
			next := rep.Steps(report.ShortID(ids[0]), s.Again)
			steps = append(steps, next[:min(1, len(next))]...)
		case len(ids) > 1:
			steps = append(steps, report.Step{Type: c.Again(all.command...), For: all.what})
		}
	}
	exceptions := report.Due(due, s.Style())
	if open, _ := explain.Unreviewed(due); len(open) > 0 {
		steps = append(steps, report.Step{Type: c.Again("dispose", open[0].Commit, "--as", "accepted", "-m", "…"), For: "records that you reviewed it"})
	}
	if untold != nil {
		exceptions = s.Style().Red("what is to be reviewed cannot be told: "+report.Clean(console.OneLine(untold))) + "\n"
	}
	text := report.Screen(rows, c.Now(), c.Columns(), s.Style()) + exceptions + report.StepLines(steps)
	if len(rows) == 0 {
		text = "Nothing waits.\n" + exceptions + report.StepLines(append(steps, []report.Step{{Type: c.Again("run", "--worktree"), For: "proposes what you have changed"}, {Type: c.Again("list"), For: "shows what was decided"}}...))
	}
	return s.Long(c.Redact(text))
}
