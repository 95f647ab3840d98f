package main

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/state"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

func (a *App) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say what waits, and what to type", Args: cli.NoArgs,
		Example: "  countersign status\n  countersign status --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

// status shows what is open, and the commands that take it on.
func (a *App) status(ctx context.Context) error {
	r, err := a.open()
	if err != nil {
		return err
	}
	snap, err := r.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return err
	}
	open, err := lookup.Open(snap.Tree)
	if err != nil {
		return err
	}
	rows, err := a.listing(ctx, snap, open, r.History)
	if err != nil {
		return err
	}
	at := map[state.State][]string{}
	for _, row := range rows {
		at[row.State] = append(at[row.State], row.TransactionID)
	}
	if a.flags.json {
		return a.printJSON(document{"transactions": report.Documents(rows), "more": false})
	}
	var steps []report.Step
	for _, all := range []struct {
		of      state.State
		command []string
		what    string
	}{
		{state.Waits, []string{"approve"}, "shows what waits and asks"}, {state.Approved, []string{"run", "--all"}, "applies what is approved"},
		{state.Unchecked, []string{"run", "--all"}, "checks what was applied"},
		{state.CheckFailed, []string{"run", "--all"}, "tries again where a check failed"},
	} {
		switch ids := at[all.of]; {
		case len(ids) == 1:
			next, err := a.stepsOf(ctx, r, snap, ids[0])
			if err != nil {
				return err
			}
			steps = append(steps, next[:min(1, len(next))]...)
		case len(ids) > 1:
			steps = append(steps, report.Step{Type: a.again(all.command...), For: all.what})
		}
	}
	shown, _ := report.Fit(rows, math.MaxInt)
	text := report.Screen(shown, a.Now(), a.columns(), a.style()) + report.StepLines(steps)
	if len(rows) == 0 {
		text = "Nothing waits.\n" + report.StepLines([]report.Step{{Type: a.again("run", "--worktree"), For: "proposes what you have changed"}, {Type: a.again("list"), For: "shows what was decided"}})
	}
	return a.long(a.redact(text))
}

// stepsOf are the next steps of one transaction.
func (a *App) stepsOf(ctx context.Context, r *pipeline.Runner, snap writing.Snapshot, id string) ([]report.Step, error) {
	g, err := r.History(ctx, snap, id)
	if err != nil {
		return nil, err
	}
	rep, err := a.report(ctx, g)
	return rep.Steps(report.ShortID(id), a.again), err
}
