package main

import "github.com/spf13/cobra"

func (a *App) closeCommand() *cobra.Command {
	var reason, file string
	cmd := &cobra.Command{
		Use:   "close [TX]",
		Short: "Close a transaction that nobody will take further",
		Long: `close ends an open transaction as interrupted. Unlike a denial it says nothing about the
patch: the same bytes may be proposed again.`,
		Example: `  countersign close tx_01J --reason "no longer needed"`,
		Args:    upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.open()
			if err != nil {
				return err
			}
			if err := a.give(cmd.Context(), r, args, file); err != nil {
				return err
			}
			id, err := a.find(cmd.Context(), r, args, false)
			if err != nil {
				return err
			}
			g, err := r.Interrupt(cmd.Context(), id, firstOf(reason, "closed by "+r.Actor.Login))
			if err != nil {
				return err
			}
			return a.showGate(cmd.Context(), r, g)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, recorded with it")
	givePatch(cmd, &file)
	return cmd
}
