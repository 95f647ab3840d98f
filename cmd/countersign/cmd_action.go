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
	code := a.child(a.Stdout, a.Stderr, args...)
	rep, err := a.newest(step)
	switch {
	case err != nil && code != 0:
		return &exitError{code, nil} // it failed before there was anything to report
	case err != nil:
		return err
	}
	step.Publish(rep)
	if err := a.publishCheck(ctx, step, rep); err != nil {
		return err
	}
	if code == exitPending || code == exitDenied {
		return nil // waiting, and a human's denial, do not fail the step
	}
	if code != 0 {
		return &exitError{code, nil}
	}
	return nil
}

func actionArgs(step action.Step) ([]string, error) {
	stage := firstOf(step.Input("stage"), "run")
	if !actionStages[stage] {
		return nil, &usageError{fmt.Sprintf("input stage: %+q is not a stage", stage), "run, review, gate, apply or validate"}
	}
	args := []string{stage}
	for _, in := range []struct{ input, flag string }{{"patch", "--patch"}, {"summary", "--summary"}, {"ledger-ref", "--ledger-ref"}} {
		if v := step.Input(in.input); v != "" {
			args = append(args, in.flag+"="+v)
		}
	}
	if step.Input("dry-run") == "true" {
		args = append(args, "--dry-run")
	}
	if tx := step.Input("transaction"); tx != "" {
		args = append(args, "--", tx)
	}
	return args, nil
}

// child runs another command line of this program.
func (a *App) child(out, errs io.Writer, args ...string) int {
	c := App{Args: args, Stdin: bytes.NewReader(nil), Stdout: out, Stderr: errs, Getenv: a.Getenv, Now: a.Now, Entropy: a.Entropy}
	return c.Main()
}

// newest reads the report of the transaction that the step worked on.
func (a *App) newest(step action.Step) (report.Report, error) {
	show := []string{"show", "--json"}
	if ref := step.Input("ledger-ref"); ref != "" {
		show = append(show, "--ledger-ref="+ref)
	}
	if tx := step.Input("transaction"); tx != "" {
		show = append(show, "--", tx)
	}
	var out bytes.Buffer
	if code := a.child(&out, a.Stderr, show...); code != 0 {
		return report.Report{}, &exitError{code, nil}
	}
	var rep report.Report
	err := json.Unmarshal(out.Bytes(), &rep)
	return rep, err
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
