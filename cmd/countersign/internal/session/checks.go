package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// commands runs commands in the sandbox, on copies of a tree below the
// temporary directory.
type commands struct {
	a             *console.Console
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
	if m == sandbox.DangerFullAccess && console.OnGiteaRunner(c.a.Getenv) {
		return nil, &console.UsageError{
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
		if c.a.Flags.Verbose || console.IsTerminal(c.a.Stderr) {
			c.a.Say("will run %q in the sandbox", one.Argv)
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
	finder := console.Ours(known).Knowing(passed...)
	done, err := workspace.Workshop{Box: box, Scratch: scratch, Scrub: finder.Text}.Run(ctx, tree, list)
	for i := range done {
		done[i].Error = finder.Text(done[i].Error)
	}
	return done, errors.Join(err, sandbox.RemoveAll(scratch))
}

// MaxResults is how many bytes of results are read: one more is refused.
const MaxResults = 8 << 20

// CheckFlags say how commands are run, or what came of them elsewhere.
type CheckFlags struct {
	Sandbox, Results string
	seccomp          bool
}

func (f *CheckFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Sandbox, "sandbox", "", "`MODE` for commands and effects, where the Policy allows it: read-only, workspace-write or danger-full-access")
	f.AddSeccomp(cmd)
	cmd.Flags().StringVar(&f.Results, "checks", "", "take what \"countersign checks\" found elsewhere from `FILE`, and run no commands here")
}

// AddSeccomp adds the flag for less of a sandbox.
func (f *CheckFlags) AddSeccomp(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.seccomp, "accept-seccomp", false, "if namespaces are denied, run commands behind Landlock and a seccomp filter only, and record that")
}

// Open opens the repository with these flags; file is a patch that the ledger
// has only without its secrets, "" for none.
func (f *CheckFlags) Open(ctx context.Context, a *console.Console, args []string, file string) (*Session, error) {
	s, err := Open(a)
	if err == nil {
		err = f.Apply(s)
	}
	if err != nil {
		return nil, err
	}
	return s.Give(ctx, args, file)
}

// Apply sets a Runner up for them.
func (f *CheckFlags) Apply(a *Session) error {
	r := a.Runner
	if r.Commands != nil {
		r.Commands = commands{a.Console, f.seccomp}
	}
	if f.Sandbox != "" {
		mode, err := sandbox.ParseMode(f.Sandbox)
		if err != nil {
			return &console.UsageError{Message: err.Error(), Hint: "--sandbox read-only, workspace-write or danger-full-access"}
		}
		r.Sandbox = policy.Sandbox(mode)
	}
	if f.Results == "" {
		return nil
	}
	raw, err := a.ReadInput(f.Results, MaxResults)
	if err != nil {
		return err
	}
	results, err := checks.Parse(raw)
	if err != nil {
		return &console.ExitError{Code: console.ExitRefused, Err: fmt.Errorf("%s: %w", console.InputName(f.Results), err)}
	}
	r.Results = &results
	return nil
}

// TargetFlags say where an approved change goes.
type TargetFlags struct{ To, branch string }

func (f *TargetFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.To, "to", "", "where to apply, `PLACE`: worktree, branch, or ref (refs/agent/applied/TX); default: what the Policy says, or worktree")
	cmd.Flags().StringVar(&f.branch, "branch", "", "with --to branch: its `NAME`; it must not be checked out (default: countersign/ and the end of the id)")
}

func (f *TargetFlags) Options(dryRun bool) (pipeline.ApplyOptions, error) {
	to := policy.Target(f.To)
	switch to {
	case "", policy.ToWorktree, policy.ToBranch, policy.ToRef:
	default:
		return pipeline.ApplyOptions{}, &console.UsageError{Message: fmt.Sprintf("cannot apply to %+q", f.To), Hint: "--to worktree, branch or ref"}
	}
	if f.branch != "" && to != policy.ToBranch {
		return pipeline.ApplyOptions{}, &console.UsageError{Message: "--branch was given without --to branch", Hint: "add --to branch"}
	}
	return pipeline.ApplyOptions{To: to, Branch: f.branch, DryRun: dryRun}, nil
}

func SayResumed(c *console.Console, id string, out pipeline.ApplyOutcome) {
	if out.Resumed {
		c.Say("continued the apply of %s, which was cut off", id)
	}
}
