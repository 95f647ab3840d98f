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

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// commands runs commands in the sandbox, on copies of a tree below the
// temporary directory.
type commands struct {
	a             *App
	acceptSeccomp bool
}

var _ pipeline.Commands = commands{}

// Run runs each command on a copy of its own. What it prints comes back without
// secrets, those among the variables that the Policy lets in included.
func (c commands) Run(ctx context.Context, known *secret.Finder, mode policy.Sandbox, tree fs.FS, list []policy.Check) ([]checks.Execution, error) {
	m, err := sandbox.ParseMode(string(mode))
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "countersign-")
	if err != nil {
		return nil, err
	}
	// A variable that is empty is taken for one that is not set.
	lookup := func(name string) (string, bool) { v := c.a.Getenv(name); return v, v != "" }
	var passed, path []string
	for _, one := range list {
		if c.a.flags.verbose || isTerminal(c.a.Stderr) {
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
	finder := known.Knowing(passed...)
	done, err := checks.Workshop{Box: box, Scratch: scratch, Scrub: finder.Text}.Run(ctx, tree, list)
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
	cmd.Flags().BoolVar(&f.seccomp, "accept-seccomp", false, "where namespaces are denied, run commands behind Landlock and a seccomp filter alone, and record that")
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
			return &usageError{err.Error(), "--sandbox read-only, workspace-write or danger-full-access"}
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
		return &exitError{exitRefused, fmt.Errorf("%s: %w", inputName(f.results), err)}
	}
	r.Results = &results
	return nil
}
