package main

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

func (a *App) ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ledger", Short: "Look after the ledger itself", Args: noArgs,
		Example: "  countersign ledger tip\n  countersign ledger accept-tip COMMIT --reason WHY",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.acceptTipCommand(), a.tipCommand())
	return cmd
}

func (a *App) tipCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tip",
		Short: "Print the ledger's tip, held to the last one seen here",
		Example: "  countersign ledger tip\n" +
			"  countersign audit --known-tip $(ssh other-machine countersign -C repo ledger tip)",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.open()
			if err != nil {
				return err
			}
			snap, err := r.Store.Snapshot(cmd.Context())
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(map[string]any{"ledger_ref": a.flags.ledgerRef, "ledger_commit": snap.Tip})
			}
			return a.print(snap.Tip + "\n")
		},
	}
}

func (a *App) acceptTipCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "accept-tip COMMIT",
		Short: "Accept a ledger that was rewritten, for good and on the record",
		Long: `accept-tip takes COMMIT, which must be the ledger's tip now, although it does not descend from
the last tip that was seen here. Only a person who knows why the ledger was rewritten should: what
is missing from it is gone. The acceptance is itself an event of the ledger, with your name and the
reason. What this clone had is kept on a ref.`,
		Example: `  countersign ledger accept-tip 3f0c… --reason "the server was restored from last night's backup"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{"no commit given", "name the ledger's tip as it is now, all 40 digits"}
			}
			return noArgs(cmd, args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.acceptTip(cmd.Context(), args[0], reason) },
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, recorded with it (needed)")
	return cmd
}

// accepter is a ledger whose tip can be accepted.
type accepter interface {
	AcceptTip(ctx context.Context, tip string, record gitstore.Record) (string, error)
}

func (a *App) acceptTip(ctx context.Context, tip, reason string) error {
	if reason == "" {
		return &usageError{"an acceptance needs a reason", `say why: --reason "…"`}
	}
	r, err := a.open()
	if err != nil {
		return err
	}
	made, err := r.Store.(accepter).AcceptTip(ctx, tip, func(tree fs.FS, remembered string) (ledger.Entry, error) {
		if err := ledger.CheckSchema(tree); err != nil {
			return ledger.Entry{}, err
		}
		return ledger.AcceptEntry(tree, a.Now(), ledger.AcceptTip{
			AcceptedTip: tip, RememberedTip: remembered, Author: r.Actor, Reason: ledger.OneLine(a.redact(reason).String(), 500),
		})
	})
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(map[string]any{"ledger_ref": a.flags.ledgerRef, "ledger_commit": made, "accepted_tip": tip})
	}
	return a.print(fmt.Sprintf("%s %.12s  accepted %.12s\n", a.flags.ledgerRef, made, tip))
}
