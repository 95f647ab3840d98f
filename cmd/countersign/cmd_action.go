package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/action"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/report"
)

// actionCommand is what action.yml runs: the inputs become flags of the same
// commands that a person types.
func (a *App) actionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "action", Hidden: true, Short: "Run as a step of a GitHub Actions workflow", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.action(cmd.Context()) },
	}
}

// actionStages are the stages that action.yml offers.
var actionStages = map[string]bool{"run": true, "review": true, "gate": true, "apply": true, "validate": true}

func (a *App) action(ctx context.Context) error {
	step := action.New(a.Getenv, a.Stdout)
	step.Mask(step.Input("token"))
	args, err := actionArgs(step)
	if err != nil {
		return err
	}
	code, id := a.child(a.Stdout, a.Stderr, args...)
	if id != "" {
		err = a.publish(ctx, step, id)
	} else if code == exitDenied {
		step.Denied()
	}
	switch {
	case err != nil:
		return err
	case code == 0, code == exitPending, code == exitDenied:
		return nil // waiting, and a human's denial, do not fail the step
	}
	return &exitError{code, nil}
}

func actionArgs(step action.Step) ([]string, error) {
	stage := firstOf(step.Input("stage"), "run")
	if !actionStages[stage] {
		return nil, &usageError{fmt.Sprintf("input stage: %+q is not a stage", stage), "run, review, gate, apply or validate"}
	}
	args := []string{stage}
	for _, name := range []string{"patch", "pack", "proposal", "bundle", "recipe", "needle", "summary", "ledger-ref"} {
		if v := step.Input(name); v != "" {
			args = append(args, "--"+name+"="+v)
		}
	}
	if to := step.Input("apply-to"); to != "" && (stage == "run" || stage == "apply") {
		args = append(args, "--to="+to)
	}
	if results := step.Input("checks"); results != "" {
		args = append(args, "--checks="+results)
	}
	if step.Input("dry-run") == "true" {
		args = append(args, "--dry-run")
	}
	if tx := step.Input("transaction"); tx != "" {
		args = append(args, "--", tx)
	}
	return args, nil
}

// child runs another command line of this program, in the same directory, and
// returns its exit code and the transaction that it worked on, if any.
func (a *App) child(out, errs io.Writer, args ...string) (code int, transaction string) {
	c := App{
		Args:  append([]string{"-C", a.flags.dir}, args...),
		Stdin: bytes.NewReader(nil), Stdout: out, Stderr: errs, Getenv: a.Getenv, Now: a.Now, Entropy: a.Entropy,
	}
	code = c.Main()
	return code, c.transaction
}

// publish reports on a transaction: outputs, job summary, check run.
func (a *App) publish(ctx context.Context, step action.Step, id string) error {
	var out bytes.Buffer
	code, _ := a.child(&out, a.Stderr, "show", "--json", "--ledger-ref="+firstOf(step.Input("ledger-ref"), a.flags.ledgerRef), "--", id)
	if code != 0 {
		return &exitError{code, nil}
	}
	var rep report.Report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		return err
	}
	step.Publish(rep)
	return a.publishCheck(ctx, step, rep)
}

func (a *App) publishCheck(ctx context.Context, step action.Step, rep report.Report) error {
	token, head := step.Input("token"), a.Getenv("GITHUB_SHA")
	if token == "" || head == "" {
		return nil
	}
	client, err := github.New(a.Getenv("GITHUB_API_URL"), a.Getenv("GITHUB_REPOSITORY"), token)
	if err != nil {
		return &usageError{err.Error(), ""}
	}
	url, err := client.PublishCheck(ctx, head, rep.CheckRun())
	if err != nil {
		return err
	}
	step.CheckRun(url)
	return nil
}
