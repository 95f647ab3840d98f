package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/rule"
	"github.com/countersign-dev/countersign/report"
)

func (a *App) validateCommand() *cobra.Command {
	var dir, file string
	var c checkFlags
	cmd := &cobra.Command{
		Use:   "validate [TX] | validate --dir DIR",
		Short: "Prove a transaction: its record, its result, and the files on disk",
		Long: `validate checks every rule of docs/formats.md on a transaction. An applied transaction
without a finding is completed and closed; a closed one is only checked again.
With --dir it checks a transaction directory that was exported or sent.`,
		Example: `  countersign validate
  countersign validate --dir ./evidence --json`,
		Args: upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" && len(args) > 0 {
				return &usageError{"both a transaction and --dir were given", "give one of them"}
			}
			if dir != "" {
				return a.validateDir(dir)
			}
			r, err := c.open(cmd.Context(), a, args, file)
			if err != nil {
				return err
			}
			return a.validate(cmd.Context(), r, args)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "check this transaction directory instead of one in the ledger")
	c.add(cmd)
	givePatch(cmd, &file)
	return cmd
}

func (a *App) validateDir(dir string) error {
	if info, err := os.Stat(a.path(dir)); err != nil || !info.IsDir() {
		return &exitError{exitIO, fmt.Errorf("%s: not a directory that can be read", report.Clean(dir))}
	}
	found, foreign := pipeline.CheckDir(os.DirFS(a.path(dir)))
	note := ""
	if foreign {
		note = " by I1 to I12 alone (another program's: its events carry no seq and prev)"
	}
	return a.showValidation(report.Clean(dir), note, found)
}

func (a *App) validate(ctx context.Context, r *pipeline.Runner, args []string) error {
	_, id, err := a.find(ctx, r, args, false)
	if err != nil && len(args) == 0 && !errors.As(err, new(*ledger.AmbiguousError)) {
		_, id, err = a.find(ctx, r, args, true) // none is open: look at the newest
	}
	if err != nil {
		return err
	}
	v, err := r.Validate(ctx, id)
	if err != nil {
		return err
	}
	if err := a.showValidation(id, "", v.Report); err != nil {
		return err
	}
	if v.Completed {
		a.say("%s is completed and closed", id)
	}
	return nil
}

// showValidation prints {"ok":…,"violations":[…]} or the same as text.
func (a *App) showValidation(what, note string, v rule.Report) error {
	if v.Violations == nil {
		v.Violations = []rule.Violation{}
	}
	if a.flags.json {
		if err := a.printJSON(map[string]any{"ok": v.OK, "violations": violations(v)}); err != nil {
			return err
		}
	} else if err := a.printValidation(what, note, v); err != nil {
		return err
	}
	if !v.OK {
		return &exitError{exitFailed, fmt.Errorf("%s does not validate: %s", what, counted(len(v.Violations), "violation"))}
	}
	return nil
}

func violations(v rule.Report) []any {
	out := []any{}
	for _, f := range v.Violations {
		out = append(out, map[string]any{"rule_id": f.RuleID, "path": f.Path, "message": f.Message})
	}
	return out
}

func (a *App) printValidation(what, note string, v rule.Report) error {
	if v.OK {
		return a.print(what + ": valid" + note + "\n")
	}
	text := ""
	for _, f := range v.Violations {
		text += fmt.Sprintf("%-8s %s: %s\n", f.RuleID, report.Clean(f.Path), report.Clean(f.Message))
	}
	return a.print(text)
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
