package pulls

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/report"
)

// Command is what action.yml runs: the inputs become flags of the same
// commands that a person types.
func Command(c *console.Console, o Others) *cobra.Command {
	return &cobra.Command{
		Use: "action", Hidden: true, Short: "Run as a step of a GitHub Actions workflow", Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runAction(cmd.Context(), c, o) },
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
	"digest":   {},
	"dispose":  {},
	"settings": {},
}

func runAction(ctx context.Context, c *console.Console, o Others) error {
	step := console.NewAction(c.Getenv, c.Stdout)
	c.Stdout, c.Stderr = console.Log(c.Stdout), console.Log(c.Stderr)
	step.Mask(step.Input("token"))
	step.Mask(step.Input("push-token"))
	args, err := actionArgs(step)
	if err != nil {
		return err
	}
	if args[0] == "plan" { // the outputs that a workflow's jobs go by
		number, err := forge.ReadNumber(step.Input("pr"))
		if err != nil {
			return err
		}
		plan, err := Plan(ctx, c, number)
		if err == nil {
			step.Planned(plan)
		}
		return err
	}
	switch args[0] {
	case "site":
		return actionSite(ctx, c, step, args)
	case "watch":
		return o.Watch(ctx, c, step)
	case "attest":
		return actionAttest(ctx, c, step)
	case "digest":
		return actionDigest(ctx, c, step, args)
	case "settings":
		return actionSettings(ctx, c, step, o.Record)
	case "dispose":
		return actionDispose(ctx, c, step)
	}
	said, errs, proposes := bytes.Buffer{}, c.Stderr, step.Input("stage") == "propose"
	if proposes {
		if err := os.MkdirAll(bundleDir(step), 0o700); err != nil {
			return console.FileError(bundleDir(step), err)
		}
		errs = &said // until it is known whether that is an error
	}
	code, done := c.CommandTo(c.Stdout, errs, c.Elsewhere, args...)
	if done.Unchanged && proposes { // a bot that found nothing
		c.Say("nothing is proposed: nothing was changed")
		return nil
	}
	_, _ = said.WriteTo(c.Stderr)
	if done.Secrets != nil {
		c.Learn(pipeline.Known{Secrets: done.Secrets})
	}
	switch {
	case done.Settled != nil:
		err = step.Settled(done.Settled)
	case done.Matrix != nil:
		err = step.Matrix(done.Matrix, len(done.Matrix.Include), done.Matrix.LeftOut)
	case done.Bundle != "":
		step.Proposed(done.Bundle)
		if console.OnGiteaRunner(c.Getenv) { // on GitHub another step of the action does it
			var raw []byte
			if raw, err = c.ReadFile(done.Bundle); err == nil { // settle looks for it there
				err = step.Upload(ctx, pull.BundleName, filepath.Base(done.Bundle), raw)
			}
		}
	case done.Transaction != "" && args[0] != "checks":
		err = publish(ctx, c, step, done)
	case code == console.ExitDenied:
		step.Denied()
	}
	switch {
	case err != nil:
		return err
	case code == 0, code == console.ExitPending, code == console.ExitDenied:
		return nil // waiting, and a human's denial, do not fail the step
	}
	return &console.ExitError{Code: code, Err: nil}
}

// actionSite writes pages of the remote's ledger, without diffs where the input redact says so, or
// says nothing and not everybody may read the repository. The output site says that they are all
// there, as they also are where the ledger does not verify. Of a ledger in another repository there
// are none unless the input says something.
func actionSite(ctx context.Context, c *console.Console, step console.Step, args []string) error {
	found, elsewhere, err := session.TakeLedger(ctx, c, cmp.Or(step.Input("ledger-ref"), c.Flags.LedgerRef))
	if err == nil && !found {
		c.Say("there is no ledger yet, and so no pages")
	}
	if err != nil || !found {
		step.Site(false)
		return err
	}
	redact := step.Input("redact")
	if redact == "" && elsewhere {
		step.Site(false)
		return &console.UsageError{
			Message: "the ledger is in another repository, so that not everybody may read it, and these pages are for everybody who may see the site",
			Hint:    "countersign init --pages --redact",
		}
	}
	if redact == "" {
		client, err := session.ForgeOfWorkflow(c)
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
	code, _ := c.Command(&told, elsewhere, args...)
	step.Site(told.Len() > 0)
	if err := console.Emit(c.Stdout, c.Redact(told.String())); err != nil || code == 0 {
		return err
	}
	return &console.ExitError{Code: code, Err: nil}
}

// actionDigest tells what waits by the remote's ledger, in the form that COUNTERSIGN_DIGEST says.
func actionDigest(ctx context.Context, c *console.Console, step console.Step, args []string) error {
	form := cmp.Or(c.Getenv("COUNTERSIGN_DIGEST"), "github-issue")
	if !slices.Contains([]string{"slack", "teams", "github-issue"}, form) {
		return &console.UsageError{Message: fmt.Sprintf("COUNTERSIGN_DIGEST is %+q", form), Hint: "slack, teams or github-issue"}
	}
	found, elsewhere, err := session.TakeLedger(ctx, c, cmp.Or(step.Input("ledger-ref"), c.Flags.LedgerRef))
	if err == nil && !found { // or none any more: that is not for an issue to close
		c.Say("there is no ledger, and so nothing is told")
	}
	if err != nil || !found {
		return err
	}
	if code, _ := c.Command(c.Stdout, elsewhere, append(args, "--post", "--"+form)...); code != 0 {
		return &console.ExitError{Code: code, Err: nil}
	}
	return nil
}

// outputOf is a report as the outputs of the step have it.
func outputOf(r report.Report) console.Output {
	out := console.Output{
		Transaction: r.TransactionID, PatchID: r.PatchID, Fingerprint: r.Fingerprint, PullRequest: r.PullRequest, OwnDiff: r.GateOnly,
		Status: string(r.Status), Outcome: r.AppliedOutcome(), AppliedCommit: r.AppliedCommit, LedgerCommit: r.LedgerCommit, Summary: r.Markdown(),
	}
	if r.Verdict != nil {
		out.Verdict = string(r.Verdict.State)
	}
	return out
}

// outputs are a settlement for the step.
func outputs(c *console.Console, s *pull.Settled) (*console.Settled, error) {
	out := &console.Settled{Outputs: []console.Output{}, About: s.About(), NeedsChecks: s.NeedsChecks, Denied: s.DeniedBefore}
	for _, rep := range s.Transactions {
		_, clean, err := console.Cleanly(c, rep)
		if err != nil {
			return nil, err
		}
		out.Outputs = append(out.Outputs, outputOf(clean))
	}
	if out.About >= 0 {
		out.CheckURL = s.CheckURLs[out.Outputs[out.About].Transaction]
	}
	return out, nil
}

// bundleDir is where the stage propose leaves its bundle.
func bundleDir(step console.Step) string { return filepath.Join(step.Temp(), "countersign") }

func actionArgs(step console.Step) ([]string, error) {
	stage := cmp.Or(step.Input("stage"), "run")
	inputs, known := actionStages[stage]
	if !known {
		return nil, &console.UsageError{Message: fmt.Sprintf("input stage: %+q is not a stage", stage), Hint: "run, review, gate, apply, validate, propose, plan, settle, checks, sweep, matrix, fleet, site, watch, attest, evidence, digest, dispose or settings"}
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

// publish reports on a transaction: outputs, job summary, check run. The verdict
// is the one that the stage came to, having asked whom it asked.
func publish(ctx context.Context, c *console.Console, step console.Step, done console.Outcome) error {
	c.Flags.LedgerRef = cmp.Or(step.Input("ledger-ref"), c.Flags.LedgerRef)
	s, snap, id, err := session.OpenOne(ctx, c, []string{done.Transaction}, true)
	if err != nil {
		return err
	}
	rep, err := s.Shown(ctx, snap, id)
	if err == nil {
		rep.Verdict = cmp.Or(done.Verdict, rep.Verdict)
		_, rep, err = console.Cleanly(s.Console, rep)
	}
	if err != nil {
		return err
	}
	if err := step.Publish([]console.Output{outputOf(rep)}, 0); err != nil {
		return err
	}
	return publishCheck(ctx, c, step, rep)
}

func publishCheck(ctx context.Context, c *console.Console, step console.Step, rep report.Report) error {
	head := c.Getenv("GITHUB_SHA")
	if rep.GateOnly { // the pull request that it became
		head = rep.HeadCommit
	}
	client, err := session.ForgeOfWorkflow(c)
	if client == nil || head == "" || step.Input("token") == "" || err != nil {
		return err
	}
	run, err := forge.Publish(ctx, client, head, rep.CheckRun())
	if err != nil {
		return err
	}
	step.CheckRun(run.URL)
	return nil
}

// actionAttest brings the remote's ledger, as sync does, and signs with the identity of this job what
// was settled and this workflow has not attested yet. All of it is kept beside the ledger, and given to
// GitHub.
func actionAttest(ctx context.Context, c *console.Console, step console.Step) error {
	ref := cmp.Or(step.Input("ledger-ref"), c.Flags.LedgerRef)
	code, synced := c.Command(c.Stdout, c.Elsewhere, "sync", "--ledger-ref="+ref)
	if code != 0 {
		return &console.ExitError{Code: code, Err: nil}
	}
	s, err := session.OpenRepo(c)
	if err != nil {
		return err
	}
	tip, err := s.Repo.Ref(ctx, ref)
	if err != nil || tip == "" { // nothing was settled
		return err
	}
	if code, _ := c.Command(c.Stdout, synced.Elsewhere, "attest", "--all", "--keyless", "--github", "--push", "--ledger-ref="+ref); code != 0 {
		return &console.ExitError{Code: code, Err: nil}
	}
	return nil
}
