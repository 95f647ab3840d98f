package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/foreign"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/result"
	"github.com/countersign-dev/countersign/pipeline/record/rule"
	"github.com/countersign-dev/countersign/report"
)

// targetFlags say where an approved change goes.
type targetFlags struct{ to, branch string }

func (f *targetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.to, "to", "", "where to apply, `PLACE`: worktree, branch, or ref (refs/agent/applied/TX); default: what the Policy says, or worktree")
	cmd.Flags().StringVar(&f.branch, "branch", "", "with --to branch: its `NAME`; it must not be checked out (default: countersign/ and the end of the id)")
}

func (f *targetFlags) options(dryRun bool) (pipeline.ApplyOptions, error) {
	to := policy.Target(f.to)
	switch to {
	case "", policy.ToWorktree, policy.ToBranch, policy.ToRef:
	default:
		return pipeline.ApplyOptions{}, &cli.UsageError{Message: fmt.Sprintf("cannot apply to %+q", f.to), Hint: "--to worktree, branch or ref"}
	}
	if f.branch != "" && to != policy.ToBranch {
		return pipeline.ApplyOptions{}, &cli.UsageError{Message: "--branch was given without --to branch", Hint: "add --to branch"}
	}
	return pipeline.ApplyOptions{To: to, Branch: f.branch, DryRun: dryRun}, nil
}

func (a *App) applyCommand() *cobra.Command {
	var dryRun bool
	var f targetFlags
	var c checkFlags
	var file string
	cmd := &cobra.Command{
		Use:   "apply [TX]",
		Short: "Write the approved bytes to the working tree or a branch",
		Long: `apply checks the approvals, the patch and the files once more, records its intent, writes,
reads back what it wrote, and records the outcome. Applying twice is harmless.

With --to branch or --to ref it builds a commit in the object database, runs the required
checks on its tree, and moves the branch or ref to it; no working tree is involved.`,
		Example: `  countersign apply --dry-run
  countersign apply tx_01J --json
  countersign apply --to branch --branch fixes`,
		Args: cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(dryRun)
			if err != nil {
				return err
			}
			r, err := c.open(cmd.Context(), a, args, file)
			if err != nil {
				return err
			}
			return a.apply(cmd.Context(), r, args, o)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "write nothing and print the result that apply would have")
	f.add(cmd)
	c.add(cmd)
	givePatch(cmd, &file)
	return cmd
}

func (a *App) apply(ctx context.Context, r *pipeline.Runner, args []string, o pipeline.ApplyOptions) error {
	snap, id, err := a.find(ctx, r, args, false)
	if err != nil {
		return err
	}
	var g pipeline.Gated
	if o.DryRun { // nothing is recorded, not even a request
		g, err = r.History(ctx, snap, id)
	} else {
		g, err = r.Gate(ctx, id)
	}
	if err != nil {
		return err
	}
	out, err := r.Apply(ctx, g, o)
	a.learn(out.Learnt)
	a.sayResumed(id, out)
	if out.Result.Outcome != "" {
		if showErr := a.showResult(ctx, r, id, out); showErr != nil {
			return showErr
		}
	}
	switch {
	case err != nil:
		return err
	case out.Already:
		a.say("nothing was written: %s is applied already", id)
	case out.Result.Outcome != result.Success:
		return &pipeline.UnappliedError{Result: out.Result}
	}
	return nil
}

func (a *App) sayResumed(id string, out pipeline.ApplyOutcome) {
	if out.Resumed {
		a.say("continued the apply of %s, which was cut off", id)
	}
}

// showResult prints the ApplyResult, which is all of --json.
func (a *App) showResult(ctx context.Context, r *pipeline.Runner, id string, out pipeline.ApplyOutcome) error {
	if a.flags.json {
		line, err := canon.Line(out.Result)
		if err != nil {
			return err
		}
		return a.print(string(line))
	}
	after := out.Ledger
	if after.Tree == nil { // it did not get as far as the ledger
		var err error
		if after, err = r.Ledger(ctx, ledger.Dir(id)); err != nil {
			return err
		}
	}
	g, err := r.History(ctx, after, id)
	if err != nil {
		return err
	}
	rep, err := a.report(ctx, g)
	if err != nil {
		return err
	}
	rep.ApplyResult, rep.AppliedCommit = &out.Result, out.Commit
	return a.tell(rep, "")
}

func (a *App) validateCommand() *cobra.Command {
	var dir, file string
	var c checkFlags
	cmd := &cobra.Command{
		Use:   "validate [TX] | validate --dir DIR",
		Short: "Prove a transaction: its record, its result, the files",
		Long: `validate checks every rule of docs/formats.md on a transaction. An applied transaction
without a finding is completed and closed; a closed one is only checked again.
With --dir it checks a transaction directory that was exported or sent.`,
		Example: `  countersign validate
  countersign validate --dir ./evidence --json`,
		Args: cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" && len(args) > 0 {
				return &cli.UsageError{Message: "both a transaction and --dir were given", Hint: "give one of them"}
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
		return &cli.ExitError{Code: cli.ExitIO, Err: fmt.Errorf("%s: not a directory that can be read", report.Clean(dir))}
	}
	found, isForeign := foreign.Check(os.DirFS(a.path(dir)))
	note := ""
	if isForeign {
		note = " by I1 to I12 alone (another program's: its events carry no seq and prev)"
	}
	return a.showValidation(report.Clean(dir), note, found, "")
}

func (a *App) validate(ctx context.Context, r *pipeline.Runner, args []string) error {
	_, id, err := a.find(ctx, r, args, false)
	if err != nil && len(args) == 0 && !as[*lookup.AmbiguousError](err) {
		_, id, err = a.find(ctx, r, args, true) // none is open: look at the newest
	}
	if err != nil {
		return err
	}
	v, err := r.Validate(ctx, id)
	if err != nil {
		return err
	}
	return a.showValidation(report.ShortID(id), "", v.Report, v.Status)
}

// showValidation prints {"ok":…,"violations":[…]} or the same as text.
func (a *App) showValidation(what, note string, v rule.Report, status ledger.Status) error {
	text := ""
	for _, f := range v.Violations {
		text += fmt.Sprintf("%-8s %s: %s\n", f.RuleID, report.Clean(f.Path), report.Clean(f.Message))
	}
	switch {
	case a.flags.quiet:
		text = ""
	case !v.OK:
	case status == ledger.Completed:
		text = what + " is applied and checked: the record and the result are as approved.\n"
	case status != "":
		text = what + ": the record is valid; nothing is applied yet.\n"
	default:
		text = what + ": valid" + note + "\n"
	}
	if err := a.result(document{"ok": v.OK, "violations": violations(v)}, text); err != nil || v.OK {
		return err
	}
	if !slices.ContainsFunc(v.Violations, func(f rule.Violation) bool { return f.RuleID != ledger.RuleNewer }) {
		return &cli.ExitError{Code: cli.ExitNewer, Err: fmt.Errorf("%s: %s", what, report.Clean(v.Violations[0].Message))}
	}
	return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("%s does not validate: %s", what, report.Counted(len(v.Violations), "violation"))}
}

func violations(v rule.Report) []any {
	out := []any{}
	for _, f := range v.Violations {
		out = append(out, document{"rule_id": f.RuleID, "path": f.Path, "message": f.Message})
	}
	return out
}
