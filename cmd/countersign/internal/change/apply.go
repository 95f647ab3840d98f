package change

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

func applyCommand(a *console.Console) *cobra.Command {
	var dryRun bool
	var f session.TargetFlags
	var c session.CheckFlags
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
		Args: console.UpToOne,
		RunE: a.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			o, err := f.Options(dryRun)
			if err != nil {
				return console.Outcome{}, err
			}
			s, err := c.Open(cmd.Context(), a, args, file)
			if err != nil {
				return console.Outcome{}, err
			}
			return apply(cmd.Context(), s, args, o)
		}),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "write nothing and print the result that apply would have")
	f.Add(cmd)
	c.Add(cmd)
	session.GivePatch(cmd, &file)
	return cmd
}

func apply(ctx context.Context, s *session.Session, args []string, o pipeline.ApplyOptions) (console.Outcome, error) {
	snap, id, err := s.Find(ctx, args, false)
	if err != nil {
		return console.Outcome{}, err
	}
	r, done := s.Runner, console.About(id)
	var g pipeline.Judgement
	if o.DryRun { // nothing is recorded, not even a request
		g, err = r.History(ctx, snap, id)
	} else {
		g, err = r.Gate(ctx, id)
	}
	if err != nil {
		return done, err
	}
	out, err := r.Apply(ctx, g, o)
	s.Learn(out.Learnt)
	session.SayResumed(s.Console, id, out)
	if out.Result.Outcome != "" {
		var showErr error
		if done, showErr = showResult(ctx, s, id, out); showErr != nil {
			return done, showErr
		}
	}
	switch {
	case err != nil:
		return done, err
	case out.Already:
		s.Say("nothing was written: %s is applied already", id)
	case out.Result.Outcome != ledger.OutcomeSuccess:
		return done, pipeline.Unapplied(out.Result)
	}
	return done, nil
}

// showResult prints the ApplyResult, which is all of --json.
func showResult(ctx context.Context, s *session.Session, id string, out pipeline.ApplyOutcome) (console.Outcome, error) {
	r, done := s.Runner, console.About(id)
	if s.Flags.JSON {
		line, err := canon.Line(out.Result)
		if err != nil {
			return done, err
		}
		return done, s.Print(string(line))
	}
	after := out.Ledger
	if after.Tree == nil { // it did not get as far as the ledger
		var err error
		if after, err = r.Ledger(ctx, ledger.Dir(id)); err != nil {
			return done, err
		}
	}
	g, err := r.History(ctx, after, id)
	if err != nil {
		return done, err
	}
	rep, err := s.Report(ctx, g)
	if err != nil {
		return done, err
	}
	rep.ApplyResult, rep.AppliedCommit = &out.Result, out.Commit
	return s.Tell(rep, "")
}

func validateCommand(a *console.Console) *cobra.Command {
	var dir, file string
	var c session.CheckFlags
	cmd := &cobra.Command{
		Use:   "validate [TX] | validate --dir DIR",
		Short: "Prove a transaction: its record, its result, the files",
		Long: `validate checks every rule of docs/formats.md on a transaction. An applied transaction
without a finding is completed and closed; a closed one is only checked again.
With --dir it checks a transaction directory that was exported or sent.`,
		Example: `  countersign validate
  countersign validate --dir ./evidence --json`,
		Args: console.UpToOne,
		RunE: a.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			if dir != "" && len(args) > 0 {
				return console.Outcome{}, &console.UsageError{Message: "both a transaction and --dir were given", Hint: "give one of them"}
			}
			if dir != "" {
				return console.Outcome{}, validateDir(a, dir)
			}
			s, err := c.Open(cmd.Context(), a, args, file)
			if err != nil {
				return console.Outcome{}, err
			}
			return validate(cmd.Context(), s, args)
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "check this transaction directory instead of one in the ledger")
	c.Add(cmd)
	session.GivePatch(cmd, &file)
	return cmd
}

func validateDir(c *console.Console, dir string) error {
	if info, err := os.Stat(c.Path(dir)); err != nil || !info.IsDir() {
		return &console.ExitError{Code: console.ExitIO, Err: fmt.Errorf("%s: not a directory that can be read", report.Clean(dir))}
	}
	found, isForeign := pipeline.CheckForeign(os.DirFS(c.Path(dir)))
	note := ""
	if isForeign {
		note = " by I1 to I12 alone (another program's: its events carry no seq and prev)"
	}
	return showValidation(c, report.Clean(dir), note, found, "")
}

func validate(ctx context.Context, s *session.Session, args []string) (console.Outcome, error) {
	_, id, err := s.Find(ctx, args, false)
	if err != nil && len(args) == 0 && !console.As[*lookup.AmbiguousError](err) {
		_, id, err = s.Find(ctx, args, true) // none is open: look at the newest
	}
	if err != nil {
		return console.Outcome{}, err
	}
	v, err := s.Runner.Validate(ctx, id)
	if err != nil {
		return console.About(id), err
	}
	return console.About(id), showValidation(s.Console, lookup.ShortID(id), "", v.Report, v.Status)
}

// showValidation prints {"ok":…,"violations":[…]} or the same as text.
func showValidation(c *console.Console, what, note string, v canon.Report, status ledger.Status) error {
	text, list := "", []any{}
	for _, f := range v.Violations {
		text += fmt.Sprintf("%-8s %s: %s\n", f.RuleID, report.Clean(f.Path), report.Clean(f.Message))
		list = append(list, console.Document{"rule_id": f.RuleID, "path": f.Path, "message": f.Message})
	}
	switch {
	case c.Flags.Quiet:
		text = ""
	case !v.OK:
	case status == ledger.Completed:
		text = what + " is applied and checked: the record and the result are as approved.\n"
	case status != "":
		text = what + ": the record is valid; nothing is applied yet.\n"
	default:
		text = what + ": valid" + note + "\n"
	}
	if err := c.Result(console.Document{"ok": v.OK, "violations": list}, text); err != nil || v.OK {
		return err
	}
	if errors.As(canon.ErrorOf(v.Violations), new(*canon.NewerError)) {
		return &console.ExitError{Code: console.ExitNewer, Err: fmt.Errorf("%s: %s", what, report.Clean(v.Violations[0].Message))}
	}
	return &console.ExitError{Code: console.ExitFailed, Err: fmt.Errorf("%s does not validate: %s", what, report.Counted(len(v.Violations), "violation"))}
}
