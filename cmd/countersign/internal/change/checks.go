package change

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/report"
)

func checksCommand(c *console.Console) *cobra.Command {
	var f struct {
		session.CheckFlags
		tree, out, patch string
	}
	var to session.TargetFlags
	cmd := &cobra.Command{
		Use:   "checks [TX] --out FILE | checks --tree COMMIT --out FILE",
		Short: "Run the commands that the Policy asks for, and write their results to a file",
		Long: `checks runs commands in the sandbox, on a copy of the tree that a transaction makes, or of the
tree of a commit. It writes only FILE, for "run --checks FILE", which takes it as what it is:
somebody's word about that tree.

In a workflow it belongs in a job with "permissions: {}" and no secrets.`,
		Example: "  countersign checks tx_01J --out results.json\n  countersign run tx_01J --checks results.json",
		Args:    console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			if f.out == "" {
				return console.Outcome{}, &console.UsageError{Message: "no file for the results was named", Hint: "--out FILE"}
			}
			if f.tree != "" && (len(args) > 0 || f.patch != "") {
				return console.Outcome{}, &console.UsageError{Message: "--tree was given beside a transaction or a patch", Hint: "--tree COMMIT stands alone"}
			}
			if f.tree != "" && !canon.IsGitID(f.tree) {
				return console.Outcome{}, &console.UsageError{Message: fmt.Sprintf("%+q is not a commit's id", f.tree), Hint: "give all its digits, as git rev-parse prints them"}
			}
			o, err := to.Options(true)
			if err != nil {
				return console.Outcome{}, err
			}
			s, err := f.Open(cmd.Context(), c, args, f.patch)
			if err != nil {
				return console.Outcome{}, err
			}
			return runChecks(cmd.Context(), s, o, args, f.tree, f.out)
		}),
	}
	cmd.Flags().StringVar(&f.tree, "tree", "", "run the Policy's commands on the tree of this `COMMIT`, given in full")
	cmd.Flags().StringVar(&f.out, "out", "", "write the results to `FILE`")
	f.AddSeccomp(cmd)
	cmd.Flags().StringVar(&f.Sandbox, "sandbox", "", "`MODE`, where the Policy allows it: workspace-write or danger-full-access")
	to.Add(cmd)
	session.GivePatch(cmd, &f.patch)
	return cmd
}

func runChecks(ctx context.Context, s *session.Session, o pipeline.ApplyOptions, args []string, tree, out string) (done console.Outcome, err error) {
	var results checks.Results
	if tree != "" {
		results, err = s.Runner.CheckTree(ctx, tree)
	} else {
		snap, id, findErr := s.Find(ctx, args, false)
		if findErr != nil {
			return done, findErr
		}
		done.Transaction = id
		var learnt pipeline.Known
		results, learnt, err = s.Runner.CheckTransaction(ctx, snap, id, o)
		s.Learn(learnt)
	}
	if err != nil {
		return done, err
	}
	if _, err := results.Line(); err != nil {
		return done, err
	}
	line, err := s.RedactJSON(results)
	if err != nil {
		return done, err
	}
	if err := atomicfile.Write(s.Path(out), []byte(line.String())); err != nil {
		return done, console.FileError(console.InputName(out), err)
	}
	failed, text := 0, ""
	for _, e := range results.Executions {
		word := "ok"
		if !e.OK() {
			word = "failed"
			if e.Required {
				failed++
			}
		}
		text += fmt.Sprintf("%-7s %q\n", word, e.Argv)
	}
	if err := s.Result(results, text); err != nil || failed == 0 {
		return done, err
	}
	return done, &console.ExitError{Code: console.ExitFailed, Err: fmt.Errorf("%s failed", report.Counted(failed, "required command"))}
}
