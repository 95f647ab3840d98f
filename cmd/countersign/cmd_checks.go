package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/terminal"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/checks/workshop"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/report"
)

// commands runs commands in the sandbox, on copies of a tree below the
// temporary directory.
type commands struct {
	a             *App
	acceptSeccomp bool
}

var _ checks.Commands = commands{}

// Run runs each command on a copy of its own. What it prints comes back without
// secrets, those among the variables that the Policy lets in included.
func (c commands) Run(ctx context.Context, known redact.Finder, mode policy.Sandbox, tree fs.FS, list []policy.Check) ([]checks.Execution, error) {
	m, err := sandbox.ParseMode(string(mode))
	if err != nil {
		return nil, err
	}
	if m == sandbox.DangerFullAccess && onGiteaRunner(c.a.Getenv) {
		return nil, &cli.UsageError{
			Message: "commands without a sandbox could read the token that this job has from its server, which may write", Hint: "sandbox: workspace-write in the Policy",
		}
	}
	scratch, err := os.MkdirTemp("", "countersign-")
	if err != nil {
		return nil, err
	}
	// A variable that is empty is taken for one that is not set.
	lookup := func(name string) (string, bool) { v := c.a.Getenv(name); return v, v != "" }
	var passed, path []string
	for _, one := range list {
		if c.a.flags.verbose || terminal.Is(c.a.Stderr) {
			c.a.say("will run %q in the sandbox", one.Argv)
		}
		for _, name := range one.Env {
			if v, ok := lookup(name); ok {
				passed = append(passed, v)
			}
		}
	}
	// Programs are looked for where we do, but for places that depend on the
	// directory one is in. What is not in the sandbox is not found there.
	for _, dir := range filepath.SplitList(c.a.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			path = append(path, dir)
		}
	}
	box := sandbox.Sandbox{
		Mode: m, Scratch: scratch, LookupEnv: lookup, AcceptSeccomp: c.acceptSeccomp,
		Read: filepath.SplitList(c.a.Getenv("COUNTERSIGN_SANDBOX_READ")), Path: strings.Join(path, string(filepath.ListSeparator)),
	}
	finder := ours(known).Knowing(passed...)
	done, err := workshop.Workshop{Box: box, Scratch: scratch, Scrub: finder.Text}.Run(ctx, tree, list)
	for i := range done {
		done[i].Error = finder.Text(done[i].Error)
	}
	return done, errors.Join(err, sandbox.RemoveAll(scratch))
}

// maxResults is how many bytes of results are read: one more is refused.
const maxResults = 8 << 20

// checkFlags say how commands are run, or what came of them elsewhere.
type checkFlags struct {
	sandbox, results string
	seccomp          bool
}

func (f *checkFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.sandbox, "sandbox", "", "`MODE` for commands and effects, where the Policy allows it: read-only, workspace-write or danger-full-access")
	f.addSeccomp(cmd)
	cmd.Flags().StringVar(&f.results, "checks", "", "take what \"countersign checks\" found elsewhere from `FILE`, and run no commands here")
}

// addSeccomp adds the flag for less of a sandbox.
func (f *checkFlags) addSeccomp(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.seccomp, "accept-seccomp", false, "if namespaces are denied, run commands behind Landlock and a seccomp filter only, and record that")
}

// open opens the repository with these flags; file is a patch that the ledger
// has only without its secrets, "" for none.
func (f *checkFlags) open(ctx context.Context, a *App, args []string, file string) (*pipeline.Runner, error) {
	r, err := a.open()
	if err != nil {
		return nil, err
	}
	if err := f.apply(a, r); err != nil {
		return nil, err
	}
	return a.give(ctx, r, args, file)
}

// apply sets a Runner up for them.
func (f *checkFlags) apply(a *App, r *pipeline.Runner) error {
	if r.Commands != nil {
		r.Commands = commands{a, f.seccomp}
	}
	if f.sandbox != "" {
		mode, err := sandbox.ParseMode(f.sandbox)
		if err != nil {
			return &cli.UsageError{Message: err.Error(), Hint: "--sandbox read-only, workspace-write or danger-full-access"}
		}
		r.Sandbox = policy.Sandbox(mode)
	}
	if f.results == "" {
		return nil
	}
	raw, err := a.readInput(f.results, maxResults)
	if err != nil {
		return err
	}
	results, err := checks.Parse(raw)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitRefused, Err: fmt.Errorf("%s: %w", inputName(f.results), err)}
	}
	r.Results = &results
	return nil
}

func (a *App) checksCommand() *cobra.Command {
	var f struct {
		checkFlags
		tree, out, patch string
	}
	var to targetFlags
	cmd := &cobra.Command{
		Use:   "checks [TX] --out FILE | checks --tree COMMIT --out FILE",
		Short: "Run the commands that the Policy asks for, and write their results to a file",
		Long: `checks runs commands in the sandbox, on a copy of the tree that a transaction makes, or of the
tree of a commit. It writes only FILE, for "run --checks FILE", which takes it as what it is:
somebody's word about that tree.

In a workflow it belongs in a job with "permissions: {}" and no secrets.`,
		Example: "  countersign checks tx_01J --out results.json\n  countersign run tx_01J --checks results.json",
		Args:    cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.out == "" {
				return &cli.UsageError{Message: "no file for the results was named", Hint: "--out FILE"}
			}
			if f.tree != "" && (len(args) > 0 || f.patch != "") {
				return &cli.UsageError{Message: "--tree was given beside a transaction or a patch", Hint: "--tree COMMIT stands alone"}
			}
			if f.tree != "" && !canon.IsHex(f.tree, 40) {
				return &cli.UsageError{Message: fmt.Sprintf("%+q is not a commit's id", f.tree), Hint: "give all 40 digits, as git rev-parse prints them"}
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
		return fileError(inputName(out), err)
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
	if err := a.result(results, text); err != nil || failed == 0 {
		return err
	}
	return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("%s failed", report.Counted(failed, "required command"))}
}
