package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/state"
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
	open, err := ledger.Open(snap.Tree)
	if err != nil {
		return err
	}
	rows, err := a.listing(ctx, snap, open, r.History)
	if err != nil {
		return err
	}
	at := map[state.State][]string{}
	for _, row := range rows {
		at[row.State] = append(at[row.State], report.ShortID(row.TransactionID))
	}
	if a.flags.json {
		return a.printJSON(document{"transactions": report.Documents(rows), "more": false})
	}
	var steps []report.Step
	step := func(of state.State, what, alone string, all ...string) {
		switch ids := at[of]; {
		case len(ids) == 1:
			steps = append(steps, report.Step{Type: a.again(alone, ids[0]), For: what})
		case len(ids) > 1:
			steps = append(steps, report.Step{Type: a.again(all...), For: what})
		}
	}
	step(state.Waits, "shows what waits and asks", "approve", "approve")
	step(state.Approved, "applies what is approved", "run", "run", "--all")
	step(state.Unchecked, "checks what was applied", "validate", "run", "--all")
	text := report.Screen(rows, a.Now(), a.columns(), 0, "", a.style()) + report.StepLines(steps)
	if len(rows) == 0 {
		text = "Nothing waits.\n" + report.StepLines([]report.Step{{Type: a.again("run", "--worktree"), For: "proposes what you have changed"}, {Type: a.again("list"), For: "shows what was decided"}})
	}
	return a.long(a.redact(text))
}
