package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/conversation"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// decideCommand is approve or deny.
func (a *App) decideCommand(word string) *cobra.Command {
	ruling := pipeline.Ruling{Decision: ledger.Decision(word), Kind: "local"}
	var fingerprint string
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
			r, _, id, err := a.openOne(cmd.Context(), args, false)
			if err != nil {
				return err
			}
			if fingerprint != "" {
				ruling.Fingerprints = []string{fingerprint}
			}
			g, err := r.Decide(cmd.Context(), id, ruling)
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
		},
	}
	cmd.Flags().StringVar(&fingerprint, "fingerprint", "", "what is meant: secret, protected, or a `patchset:…` in full; refused if the transaction's is another")
	cmd.Flags().BoolVar(&ruling.All, "all", false, "everything that the transaction asks about")
	cmd.Flags().StringVar(&ruling.Reason, "reason", "", "why, recorded with the decision")
	return cmd
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
			r, _, id, err := a.openOne(cmd.Context(), args, false)
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

func (a *App) waitCommand() *cobra.Command {
	var timeout, every time.Duration
	cmd := &cobra.Command{
		Use:   "wait [TX]",
		Short: "Wait until people have decided, or the transaction has ended",
		Long: `wait looks again and again until the verdict on a transaction is there. Its exit code is that
of gate: 0 approved, 5 denied; 4 when the time is over and approvals are still pending.`,
		Example: "  countersign wait tx_01J --timeout 30m && countersign apply tx_01J",
		Args:    upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 || every < 0 {
				return &usageError{"a time to wait cannot be negative", "--timeout 30m"}
			}
			r, _, id, err := a.openOne(cmd.Context(), args, false)
			if err != nil {
				return err
			}
			return a.wait(cmd.Context(), r, id, timeout, every)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this `TIME`, such as 90s or 2h (default: never)")
	cmd.Flags().DurationVar(&every, "every", 0, "look again after this `TIME` (default: 1s, of a pull request 30s)")
	return cmd
}

// wait looks until there is a verdict. What could not be read this time is
// looked at again: it is no verdict.
func (a *App) wait(ctx context.Context, r *pipeline.Runner, id string, timeout, every time.Duration) error {
	began := a.Now()
	for {
		g, err := r.Gate(ctx, id)
		unread := errors.As(err, new(*conversation.ReadingError))
		switch {
		case err != nil && !unread:
			return err
		case unread:
			a.say("%s", oneLine(err))
		case g.Transaction().Closed || !errors.As(g.Err(), new(*pipeline.PendingError)):
			return errors.Join(a.showGate(g), g.Ending())
		}
		if timeout > 0 && a.Now().Sub(began) >= timeout {
			if unread {
				return err
			}
			return g.Err()
		}
		d := time.Second
		if unread || g.Pull() != nil {
			d = 30 * time.Second // a forge counts requests
		}
		if err := sleep(ctx, cmp.Or(every, d)); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// pause waits as the program was told to wait.
func (a *App) pause(ctx context.Context, d time.Duration) error {
	if a.Wait != nil {
		return a.Wait(ctx, d)
	}
	return sleep(ctx, d)
}

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
			g, err := r.Interrupt(cmd.Context(), id, cmp.Or(reason, "closed by "+r.Actor.Login))
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
