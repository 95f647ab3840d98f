package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/report"
)

// reviewFlags say what is proposed.
type reviewFlags struct {
	patch   string
	summary string
	dryRun  bool
}

func (f *reviewFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.patch, "patch", "p", "", "Git diff to propose, `FILE` or - for stdin")
	cmd.Flags().StringVarP(&f.summary, "summary", "s", "", "what the patch is for, shown to the approver")
}

func (a *App) reviewCommand() *cobra.Command {
	var f reviewFlags
	cmd := &cobra.Command{
		Use:   "review --patch FILE",
		Short: "Record a proposal; writes nothing but the ledger",
		Example: `  countersign review --patch fix.patch --summary "close the file"
  git diff main...topic | countersign review --patch -`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.review(cmd.Context(), f) },
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "check the patch and print its patch_id; record nothing")
	return cmd
}

func (a *App) review(ctx context.Context, f reviewFlags) error {
	r, err := a.open()
	if err != nil {
		return err
	}
	done, err := a.propose(ctx, r, f)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.showDryRun(done)
	}
	g, err := r.History(ctx, done.ID)
	if err != nil {
		return err
	}
	g.LedgerCommit = done.LedgerCommit
	rep, err := a.report(ctx, r, g)
	if err != nil {
		return err
	}
	rep.Verdict = nil
	if done.Known {
		a.say("this patch is under review already")
	}
	if err := a.show(rep); err != nil {
		return err
	}
	a.say("hint: %s", a.again("run", done.ID))
	return nil
}

// propose reads the input and records it.
func (a *App) propose(ctx context.Context, r *pipeline.Runner, f reviewFlags) (pipeline.Reviewed, error) {
	if f.patch == "" {
		return pipeline.Reviewed{}, &usageError{"no patch given", `name one with --patch FILE, or --patch - for stdin`}
	}
	raw, err := a.readInput(f.patch, r.Policy.Limits.Bytes)
	if err != nil {
		return pipeline.Reviewed{}, err
	}
	in, err := pipeline.DiffInput(raw, f.summary)
	if int64(len(raw)) > r.Policy.Limits.Bytes {
		// Cut off by the limit, so whatever the parser says is beside the point.
		in, err = pipeline.Input{Raw: raw}, nil
	}
	if err != nil {
		return pipeline.Reviewed{}, fmt.Errorf("%s: %w", inputName(f.patch), err)
	}
	done, err := r.Review(ctx, in, f.dryRun)
	a.transaction = done.ID
	if isInputError(err) {
		err = fmt.Errorf("%s: %w", inputName(f.patch), err)
	}
	return done, err
}

// isInputError tells whether an error is about the patch itself.
func isInputError(err error) bool {
	var limit *pipeline.LimitError
	return isPatchError(err) || errors.As(err, &limit)
}

func inputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return report.Clean(name)
}

func (a *App) showDryRun(done pipeline.Reviewed) error {
	if a.flags.json {
		return a.printJSON(map[string]any{
			"base_commit": done.BaseCommit, "dry_run": true, "patch_id": done.PatchID, "fingerprint": "patchset:" + done.PatchID,
		})
	}
	return a.print(report.Diff(done.Patchset.Bytes(), a.style()) + "\npatch " + done.PatchID + " (dry run: nothing was recorded)\n")
}

// noArgs and upToOne are cobra's checks with our exit code and a hint.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Sprintf("unexpected argument %+q", args[0]), fmt.Sprintf("see %q", cmd.CommandPath()+" --help")}
	}
	return nil
}

func upToOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return noArgs(cmd, args[1:])
	}
	return nil
}
