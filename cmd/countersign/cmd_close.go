package main

import (
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

func (a *App) closeCommand() *cobra.Command {
	var reason, file, status string
	cmd := &cobra.Command{
		Use:   "close [TX]",
		Short: "Close a transaction that nobody will take further",
		Long: `close ends an open transaction as interrupted. Unlike a denial it says nothing about the
patch: the same bytes may be proposed again. The other ends of a transaction follow from what
is decided and done.`,
		Example: `  countersign close tx_01J --reason "no longer needed"`,
		Args:    upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := closeStatus("--status", status); err != nil {
				return err
			}
			r, err := a.open()
			if err != nil {
				return err
			}
			if r, err = a.give(cmd.Context(), r, args, file); err != nil {
				return err
			}
			_, id, err := a.find(cmd.Context(), r, args, false)
			if err != nil {
				return err
			}
			g, err := r.Interrupt(cmd.Context(), id, firstOf(reason, "closed by "+r.Actor.Login))
			if err != nil {
				return err
			}
			return a.showGate(g)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, recorded with it")
	cmd.Flags().StringVar(&status, "status", string(ledger.Interrupted), "how it ends: `STATUS` can only be interrupted")
	givePatch(cmd, &file)
	return cmd
}

// closeStatus refuses the ends that are not a person's, nor a client's, to set.
func closeStatus(name, status string) error {
	if status == string(ledger.Interrupted) {
		return nil
	}
	return &usageError{name + " can only be interrupted: the other ends follow from what is decided and done", ""}
}
