package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline"
)

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
			r, err := a.open()
			if err != nil {
				return err
			}
			_, id, err := a.find(cmd.Context(), r, args, false)
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
		unread := errors.As(err, new(*pipeline.ReadingError))
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
		if err := sleep(ctx, patience(unread || g.Pull() != nil, every)); err != nil {
			return err
		}
	}
}

// patience is how long to wait before the next look: a forge counts requests.
func patience(forge bool, every time.Duration) time.Duration {
	switch {
	case every > 0:
		return every
	case forge:
		return 30 * time.Second
	}
	return time.Second
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
