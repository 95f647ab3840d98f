package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline/packapply"
	"github.com/countersign-dev/countersign/pipeline/result"
)

func (a *App) packCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pack",
		Short:   "Apply a pack (patch.json) to a plain directory",
		Example: "  countersign pack apply --pack ./pack --target ./site --dry-run",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.packApplyCommand())
	return cmd
}

func (a *App) packApplyCommand() *cobra.Command {
	var pack, target string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "apply --pack DIR --target DIR",
		Short: "Write a pack's files into a directory, and print the ApplyResult",
		Long: `apply carries out the operations of a pack's patch.json in a directory. It needs no
repository, asks for no approval and records nothing; "countersign review" does. It prints
the ApplyResult as canonical JSON, also where it refuses.

Exit codes: 0 SUCCESS, 1 PARTIAL or FAILED, 2 REFUSED, 3 the pack or the target cannot be read.`,
		Example: `  countersign pack apply --pack ./pack --target ./site --dry-run
  countersign pack apply --pack ./pack --target ./site`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.packApply(pack, target, dryRun) },
	}
	cmd.Flags().StringVar(&pack, "pack", "", "`DIR` that holds patch.json")
	cmd.Flags().StringVar(&target, "target", "", "`DIR` to write to; no link may lead to it or be in it")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done; write nothing")
	return cmd
}

func (a *App) packApply(pack, target string, dryRun bool) error {
	if pack == "" || target == "" {
		return &usageError{"no pack or no target given", "name them with --pack DIR and --target DIR"}
	}
	r, err := packapply.Apply(a.path(pack), a.path(target), dryRun)
	if err != nil {
		return &exitError{exitIO, fmt.Errorf("pack apply: %w", err)}
	}
	line, err := r.Line()
	if err != nil {
		return err
	}
	if err := a.print(string(line)); err != nil || r.Outcome == result.Success {
		return err
	}
	return &exitError{r.Outcome.ExitCode(), fmt.Errorf("pack apply: %s: %s", r.Outcome, r.Error)}
}
