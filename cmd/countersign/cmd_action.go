package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/action"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/report"
)

// actionCommand is what action.yml runs: the inputs become flags of the same
// commands that a person types.
func (a *App) actionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "action", Hidden: true, Short: "Run as a step of a GitHub Actions workflow", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.action(cmd.Context()) },
	}
}

// actionStages are the stages that action.yml offers, and the inputs that each
// takes as flags.
var actionStages = map[string][]string{
	"run":      {"patch", "from", "pack", "proposal", "bundle", "recipe", "needle", "suggestion", "summary", "trace", "checks"},
	"propose":  {"patch", "from", "pack", "proposal", "bundle", "recipe", "needle", "suggestion", "summary", "trace"},
	"review":   {"patch", "from", "pack", "proposal", "bundle", "recipe", "needle", "suggestion", "summary", "trace", "pr", "bundle-out"},
	"gate":     {},
	"apply":    {"checks"},
	"validate": {"checks"},
	"checks":   {},
	"plan":     {"pr"},
	"matrix":   {"max"},
	"fleet":    {},
	"settle":   {"pr", "bundle", "checks"},
	"sweep":    {},
	"site":     {"out"},
	"watch":    {"since", "allowed-signers"},
	"attest":   {},
	"evidence": {"from", "to", "out"},
}

func (a *App) action(ctx context.Context) error {
	step := action.New(a.Getenv, a.Stdout)
	step.Mask(step.Input("token"))
	step.Mask(step.Input("push-token"))
	args, err := actionArgs(step)
	if err != nil {
		return err
	}
	if args[0] == "plan" { // the outputs that a workflow's jobs go by
		number, err := pull.ReadNumber(step.Input("pr"))
		if err != nil {
			return err
		}
		plan, err := a.plan(ctx, number)
		if err == nil {
			step.Planned(plan)
		}
		return err
	}
	switch args[0] {
	case "site":
		return a.actionSite(ctx, step, args)
	case "watch":
		return a.actionWatch(ctx, step)
	case "attest":
		return a.actionAttest(ctx, step)
	}
	if step.Input("stage") == "propose" {
		if err := os.MkdirAll(bundleDir(step), 0o700); err != nil {
			return fileError(bundleDir(step), err)
		}
	}
	code, child := a.child(a.Stdout, a.Stderr, args...)
	switch {
	case child.settled != nil:
		err = publishSettled(step, child)
	case child.matrix != nil:
		err = step.Matrix(child.matrix, len(child.matrix.Include), child.matrix.LeftOut)
	case child.bundled != "":
		step.Proposed(child.bundled)
		if onGiteaRunner(a.Getenv) { // on GitHub another step of the action does it
			err = a.uploadBundle(ctx, step, child.bundled)
		}
	case child.unchanged && step.Input("stage") == "propose":
		return nil // a bot that found nothing
	case child.transaction != "" && args[0] != "checks":
		err = a.publish(ctx, step, child)
	case code == cli.ExitDenied:
		step.Denied()
	}
	switch {
	case err != nil:
		return err
	case code == 0, code == cli.ExitPending, code == cli.ExitDenied:
		return nil // waiting, and a human's denial, do not fail the step
	}
	return &cli.ExitError{Code: code, Err: nil}
}

// uploadBundle leaves a bundle with the run, where settle looks for it.
func (a *App) uploadBundle(ctx context.Context, step action.Step, file string) error {
	raw, err := a.readFile(file)
	if err != nil {
		return err
	}
	return step.Upload(ctx, pull.BundleName, filepath.Base(file), raw)
}

// actionSite writes pages of the remote's ledger, without diffs where the input redact says so, or
// says nothing and not everybody may read the repository. The output site says that they are all
// there, as they also are where the ledger does not verify. Of a ledger in another repository there
// are none unless the input says something.
func (a *App) actionSite(ctx context.Context, step action.Step, args []string) error {
	found, err := a.takeLedger(ctx, cmp.Or(step.Input("ledger-ref"), a.flags.ledgerRef))
	if err == nil && !found {
		a.say("there is no ledger yet, and so no pages")
	}
	if err != nil || !found {
		step.Site(false)
		return err
	}
	redact := step.Input("redact")
	if redact == "" && a.elsewhere {
		step.Site(false)
		return &cli.UsageError{
			Message: "the ledger is in another repository, so that not everybody may read it, and these pages are for everybody who may see the site",
			Hint:    "countersign init --pages --redact",
		}
	}
	if redact == "" {
		client, err := a.forgeOfWorkflow()
		public := false
		if client != nil && err == nil {
			public, err = client.IsPublic(ctx)
		}
		if err != nil {
			return err
		}
		redact = strconv.FormatBool(!public)
	}
	if redact != "false" {
		args = append(args, "--redact")
	}
	var told bytes.Buffer // nothing where the pages are not all there
	code, _ := a.child(&told, a.Stderr, args...)
	step.Site(told.Len() > 0)
	if err := emit(a.Stdout, a.redact(told.String())); err != nil || code == 0 {
		return err
	}
	return &cli.ExitError{Code: code, Err: nil}
}

// takeLedger makes the clone's ledger the remote's, also one that does not verify, which sync
// would not bring: it is only looked at, in the clone of one job. It reports whether the remote
// has one.
func (a *App) takeLedger(ctx context.Context, ref string) (found bool, err error) {
	repo, settings, err := a.openRepo()
	if err != nil {
		return false, err
	}
	a.helpers, a.flags.ledgerRef = !inWorkflow(a.Getenv), ref
	place, err := a.place(ctx, repo, settings)
	if err != nil {
		return false, err
	}
	defer place.Server.Close()
	tip, err := repo.Fetch(ctx, place.Server, place.Ref, true)
	if none := (*gitstore.NoRefError)(nil); errors.As(err, &none) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	have, err := repo.Ref(ctx, ref)
	if err != nil || have == tip {
		return true, err
	}
	return true, repo.MoveRef(ctx, ref, have, tip)
}

// publishSettled sets the outputs of a settlement: all of one transaction.
func publishSettled(step action.Step, child *App) error {
	s := child.settled
	var all []report.Report
	for _, rep := range s.Transactions {
		clean, err := child.cleanReport(rep)
		if err != nil {
			return err
		}
		all = append(all, clean)
	}
	about := s.About()
	if err := step.Publish(all, about); err != nil {
		return err
	}
	switch {
	case about >= 0:
		step.CheckRun(s.CheckURLs[all[about].TransactionID])
	case s.DeniedBefore:
		step.Denied()
	}
	return step.NeedsChecks(s.NeedsChecks)
}

// bundleDir is where the stage propose leaves its bundle.
func bundleDir(step action.Step) string { return filepath.Join(step.Temp(), "countersign") }

func actionArgs(step action.Step) ([]string, error) {
	stage := cmp.Or(step.Input("stage"), "run")
	inputs, known := actionStages[stage]
	if !known {
		return nil, &cli.UsageError{Message: fmt.Sprintf("input stage: %+q is not a stage", stage), Hint: "run, review, gate, apply, validate, propose, plan, settle, checks, sweep, matrix, fleet, site, watch, attest or evidence"}
	}
	args := []string{stage}
	switch stage {
	case "propose": // what the bot left in the working tree, where it names nothing else
		args = []string{"review", "--bundle-out=" + filepath.Join(bundleDir(step), "bundle.json")}
		if !slices.ContainsFunc([]string{"patch", "pack", "proposal", "recipe", "suggestion"}, func(name string) bool { return step.Input(name) != "" }) {
			args = append(args, "--worktree")
		}
	case "evidence":
		args = []string{"evidence", "--installed"}
	case "sweep":
		args = []string{"settle", "--all"}
	case "matrix": // each run of the workflow takes the next part
		args = []string{"list", "--matrix", "--pull-requests", "--part=" + cmp.Or(step.RunNumber(), "0")}
	}
	for _, name := range append(inputs, "ledger-ref") {
		if v := step.Input(name); v != "" {
			args = append(args, "--"+name+"="+v)
		}
	}
	if out := step.Input("checks-out"); out != "" && stage == "checks" {
		args = append(args, "--out="+out)
	}
	if to := step.Input("apply-to"); to != "" && (stage == "run" || stage == "apply" || stage == "settle" || stage == "sweep") {
		args = append(args, "--to="+to)
	}
	if step.Input("dry-run") == "true" && (stage == "review" || stage == "apply") {
		args = append(args, "--dry-run")
	}
	if tx := step.Input("transaction"); tx != "" {
		args = append(args, "--", tx)
	}
	return args, nil
}

// child runs another command line of this program, in the same directory, and
// returns its exit code and what it was about.
func (a *App) child(out, errs io.Writer, args ...string) (int, *App) {
	c := &App{
		Args: append([]string{"-C", a.flags.dir}, args...), Dir: a.Dir,
		Stdin: bytes.NewReader(nil), Stdout: out, Stderr: errs, Getenv: a.Getenv, Now: a.Now, Entropy: a.Entropy, Wait: a.Wait, elsewhere: a.elsewhere,
	}
	return c.Main(), c
}

// publish reports on a transaction: outputs, job summary, check run. The verdict
// is the one that the stage came to, having asked whom it asked.
func (a *App) publish(ctx context.Context, step action.Step, child *App) error {
	var out bytes.Buffer
	code, _ := a.child(&out, a.Stderr, "show", "--json", "--ledger-ref="+cmp.Or(step.Input("ledger-ref"), a.flags.ledgerRef), "--", child.transaction)
	if code != 0 {
		return &cli.ExitError{Code: code, Err: nil}
	}
	var rep report.Report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		return err
	}
	if child.shown != nil && child.shown.Verdict != nil {
		rep.Verdict = child.shown.Verdict
	}
	if err := step.Publish([]report.Report{rep}, 0); err != nil {
		return err
	}
	return a.publishCheck(ctx, step, rep)
}

func (a *App) publishCheck(ctx context.Context, step action.Step, rep report.Report) error {
	head := a.Getenv("GITHUB_SHA")
	if rep.GateOnly { // the pull request that it became
		head = rep.HeadCommit
	}
	client, err := a.forgeOfWorkflow()
	if client == nil || head == "" || step.Input("token") == "" || err != nil {
		return err
	}
	run, err := client.PublishCheck(ctx, head, rep.CheckRun())
	if err != nil {
		return err
	}
	step.CheckRun(run.URL)
	return nil
}
