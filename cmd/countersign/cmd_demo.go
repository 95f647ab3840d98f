package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/demo"
)

func (a *App) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Walk a patch through every stage in a throw-away repository",
		Long: `demo makes a small repository in a temporary folder, takes a patch through
review, gate, apply and validate, denies another one for good, lets an agent fail to approve
its own patch where signatures are demanded, and forges a ledger to show that validate notices. It explains each step, and leaves the folder for you.`,
		Example: "  countersign demo",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) },
	}
}

func (a *App) demo(ctx context.Context) error {
	quiet := *a // --json: the demo itself is silent
	if a.flags.json {
		quiet.Stdout = io.Discard
	}
	dir, id, err := demo.Run(ctx, demo.Program{
		Run: func(args ...string) (int, string) {
			code, child := quiet.child(quiet.Stdout, quiet.Stdout, append([]string{"--no-pager"}, args...)...)
			return code, child.transaction
		},
		Print: quiet.print, Bold: a.style().Bold, Getenv: a.Getenv, Now: a.Now,
	})
	if err != nil || !a.flags.json {
		return err
	}
	return a.printJSON(document{"directory": dir, "transaction_id": id})
}
