package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
)

func (a *App) checksCommand() *cobra.Command {
	var f struct {
		checkFlags
		tree, out, patch string
	}
	var to targetFlags
	cmd := &cobra.Command{
		Use:   "checks [TX] --out FILE | checks --tree COMMIT --out FILE",
		Short: "Run the commands that the Policy asks for, and nothing else, and write down what came of them",
		Long: `checks runs commands in the sandbox, on a copy of the tree that a transaction makes of
its base, or of the tree of a commit. It writes nothing but FILE, which "run --checks FILE"
takes as what it is: somebody's word on that tree.

In a workflow it belongs in a job with "permissions: {}" and no secrets.`,
		Example: "  countersign checks tx_01J --out results.json\n  countersign run tx_01J --checks results.json",
		Args:    upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.out == "" {
				return &usageError{"no file for the results was named", "--out FILE"}
			}
			if f.tree != "" && (len(args) > 0 || f.patch != "") {
				return &usageError{"--tree was given beside a transaction or a patch", "--tree COMMIT stands alone"}
			}
			if f.tree != "" && !isCommitID(f.tree) {
				return &usageError{fmt.Sprintf("%+q is not a commit's id", f.tree), "give all 40 digits, as git rev-parse prints them"}
			}
			o, err := to.options(true)
			if err != nil {
				return err
			}
			r, err := f.open(cmd.Context(), a, args, f.patch)
			if err != nil {
				return err
			}
			return a.checks(cmd.Context(), r, o, args, f.tree, f.out)
		},
	}
	cmd.Flags().StringVar(&f.tree, "tree", "", "run the Policy's commands on the tree of this `COMMIT`, given in full")
	cmd.Flags().StringVar(&f.out, "out", "", "write the results to `FILE`")
	f.addSeccomp(cmd)
	cmd.Flags().StringVar(&f.sandbox, "sandbox", "", "`MODE`, where the Policy allows it: workspace-write or danger-full-access")
	to.add(cmd)
	givePatch(cmd, &f.patch)
	return cmd
}

func (a *App) checks(ctx context.Context, r *pipeline.Runner, o pipeline.ApplyOptions, args []string, tree, out string) error {
	var results checks.Results
	var err error
	if tree != "" {
		results, err = r.CheckTree(ctx, tree)
	} else {
		snap, id, findErr := a.find(ctx, r, args, false)
		if findErr != nil {
			return findErr
		}
		var learnt pipeline.Known
		results, learnt, err = r.CheckTransaction(ctx, snap, id, o)
		a.learn(learnt)
	}
	if err != nil {
		return err
	}
	if _, err := results.Line(); err != nil {
		return err
	}
	line, err := a.redactJSON(results)
	if err != nil {
		return err
	}
	if err := writeFile(a.path(out), []byte(line.String())); err != nil {
		return &exitError{exitIO, fmt.Errorf("%s: %w", inputName(out), plain(err))}
	}
	return a.showChecks(results)
}

func (a *App) showChecks(r checks.Results) error {
	failed := 0
	text := ""
	for _, e := range r.Executions {
		word := "ok"
		if !e.OK() {
			word = "failed"
			if e.Required {
				failed++
			}
		}
		text += fmt.Sprintf("%-7s %q\n", word, e.Argv)
	}
	var err error
	if a.flags.json {
		err = a.printJSON(r)
	} else {
		err = a.print(text)
	}
	if err == nil && failed > 0 {
		err = &exitError{exitFailed, fmt.Errorf("%s failed", counted(failed, "required command"))}
	}
	return err
}
