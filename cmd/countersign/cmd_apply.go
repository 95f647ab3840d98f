package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/result"
)

func addTarget(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "to", pipeline.TargetWorktree, "where to apply: worktree")
}

func checkTarget(to string) error {
	if to != pipeline.TargetWorktree {
		return &usageError{fmt.Sprintf("cannot apply to %+q", to), "this version applies to the working tree only: --to worktree"}
	}
	return nil
}

func (a *App) applyCommand() *cobra.Command {
	var dryRun bool
	to := pipeline.TargetWorktree
	cmd := &cobra.Command{
		Use:   "apply [TX]",
		Short: "Write the approved bytes, and nothing else, to the working tree",
		Long: `apply checks the approvals, the patch and the files once more, records its intent, writes,
reads back what it wrote, and records the outcome. Applying twice is harmless.`,
		Example: `  countersign apply --dry-run
  countersign apply tx_01J --json`,
		Args: upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTarget(to); err != nil {
				return err
			}
			return a.apply(cmd.Context(), args, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "write nothing and print the result that apply would have")
	addTarget(cmd, &to)
	return cmd
}

func (a *App) apply(ctx context.Context, args []string, dryRun bool) error {
	r, err := a.open()
	if err != nil {
		return err
	}
	id, err := a.find(ctx, r, args, false)
	if err != nil {
		return err
	}
	g, err := a.gateFor(ctx, r, id, dryRun)
	if err != nil {
		return err
	}
	out, err := r.Apply(ctx, g, dryRun)
	if out.Result.Outcome != "" {
		if showErr := a.showResult(ctx, r, id, out); showErr != nil {
			return showErr
		}
	}
	switch {
	case err != nil:
		return err
	case out.Already:
		a.say("nothing written: %s is applied already", id)
	case out.Result.Outcome != result.Success:
		return &exitError{out.Result.Outcome.ExitCode(), fmt.Errorf("apply: %s", out.Result.Error)}
	case !dryRun:
		a.say("hint: %s", a.again("validate", id))
	}
	return nil
}

// gateFor asks the gate; a dry run records nothing, not even a request.
func (a *App) gateFor(ctx context.Context, r *pipeline.Runner, id string, dryRun bool) (pipeline.Gated, error) {
	if dryRun {
		return r.History(ctx, id)
	}
	return r.Gate(ctx, id)
}

// showResult prints the ApplyResult, which is all of --json.
func (a *App) showResult(ctx context.Context, r *pipeline.Runner, id string, out pipeline.ApplyOutcome) error {
	if a.flags.json {
		line, err := out.Result.Line()
		if err != nil {
			return err
		}
		return a.print(string(line))
	}
	g, err := r.History(ctx, id)
	if err != nil {
		return err
	}
	g.LedgerCommit = out.LedgerCommit
	rep, err := a.report(ctx, r, g)
	if err != nil {
		return err
	}
	rep.ApplyResult = &out.Result
	return a.show(rep)
}
