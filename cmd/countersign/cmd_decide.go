package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

type decideFlags struct {
	fingerprint, reason string
	all                 bool
}

// decideCommand is approve or deny.
func (a *App) decideCommand(word string) *cobra.Command {
	var f decideFlags
	short := map[string]string{
		"approve": "Approve the exact bytes of a patch",
		"deny":    "Deny a patch for good: the same bytes are refused from now on",
	}
	cmd := &cobra.Command{
		Use:   word + " [TX]",
		Short: short[word],
		Example: "  countersign diff tx_01J && countersign " + word + " tx_01J\n" +
			"  countersign " + word + ` --reason "read it line by line"`,
		Args: upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), ledger.Decision(word), f, args)
		},
	}
	cmd.Flags().StringVar(&f.fingerprint, "fingerprint", "", "what is meant: secret, protected, or a `patchset:…` in full; refused if the transaction's is another")
	cmd.Flags().BoolVar(&f.all, "all", false, "everything that the transaction asks about")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, recorded with the decision")
	return cmd
}

func (a *App) decide(ctx context.Context, d ledger.Decision, f decideFlags, args []string) error {
	r, err := a.open()
	if err != nil {
		return err
	}
	_, id, err := a.find(ctx, r, args, false)
	if err != nil {
		return err
	}
	g, err := r.Decide(ctx, id, pipeline.Ruling{Decision: d, Fingerprint: f.fingerprint, All: f.all, Reason: f.reason, Kind: "local"})
	if err != nil {
		return err
	}
	a.sayUncounted(g)
	if !g.Recorded {
		a.say("nothing recorded: %s is %s already (%s)", id, g.Verdict.State, g.Verdict.Reason)
	}
	if err := a.showGate(g); err != nil {
		return err
	}
	if g.Err() == nil && !g.Transaction().Closed {
		a.say("hint: %s", a.again("run", id))
	}
	return nil
}

// sayUncounted says which of several decisions were not recorded, and why.
func (a *App) sayUncounted(g pipeline.Gated) {
	for _, why := range g.Uncounted {
		a.say("%s", why)
	}
}

func (a *App) gateCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "gate [TX]",
		Short:   "Say whether a patch is approved, and why each decision counts or not",
		Example: "  countersign gate tx_01J --json",
		Args:    upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.open()
			if err != nil {
				return err
			}
			_, id, err := a.find(cmd.Context(), r, args, false)
			if err != nil {
				return err
			}
			g, err := r.Gate(cmd.Context(), id)
			if err != nil {
				return err
			}
			if err := a.showGate(g); err != nil {
				return err
			}
			return g.Ending()
		},
	}
}

func (a *App) showGate(g pipeline.Gated) error {
	rep, err := a.report(g)
	if err != nil {
		return err
	}
	return a.show(rep)
}
