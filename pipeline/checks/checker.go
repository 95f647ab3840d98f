package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Commands runs commands, each on a copy of a commit's tree of its own, in the
// sandbox. A sandbox that is not there is an error; a command that fails is not.
// What they print comes back without what known finds.
type Commands interface {
	Run(ctx context.Context, known redact.Finder, mode policy.Sandbox, tree fs.FS, commands []policy.Check) ([]Execution, error)
}

// A Checker runs the checks of a change. Its commands run here, or Results has
// what came of them elsewhere, or else they are refused.
type Checker struct {
	Repo     code.Repository
	Commands Commands       // nil where none are run
	Results  *Results       // nil where there are none
	Sandbox  policy.Sandbox // that was asked for, "" for the Policy's
	Secrets  redact.Finder
	Ran      Ran // what ran already is not run again
}

// Ran is what came of the commands that ran, each once a tree.
type Ran map[string]Execution

func (r Ran) key(tree string, c policy.Command) string { return tree + " " + key(c.Argv, c.Shell) }

// Done is what came of all checks of a tree, and the commands that ran.
type Done struct {
	PolicySHA256 string
	Tree         string // "" where no command ran
	Results      []TestResult
	Runs         []CommandRun
	Ran          Ran // with what ran before

	source string // "here", or "results": somebody's word
}

// A CommandRun is what came of one command that was wanted.
type CommandRun struct {
	Wanted
	Execution
}

// A Build makes the commit whose tree commands run on.
type Build func() (commit string, err error)

// Check runs a Proposal's tests on files that read returns, and the commands on
// the tree of a commit that is built only if there are any.
func (c Checker) Check(ctx context.Context, p policy.Policy, asked Asked, read ReadFile, build Build) (Done, error) {
	results, err := RunTests(asked, read)
	if err != nil {
		return Done{}, err
	}
	wanted := WantedCommands(p, asked)
	done, err := c.run(ctx, p, wanted, build)
	if err != nil {
		return Done{}, err
	}
	for _, w := range wanted {
		if w.Message != "" {
			results = append(results, w.Result(false, w.Message))
		}
	}
	for _, run := range done.Runs {
		results = append(results, run.Result(run.OK(), c.failure(run.Execution)))
	}
	done.Results = results
	return done, nil
}

// HandOver runs the commands on the tree of a commit, and is what another job can
// take them from.
func (c Checker) HandOver(ctx context.Context, p policy.Policy, asked Asked, build Build) (Results, error) {
	done, err := c.run(ctx, p, WantedCommands(p, asked), build)
	if err != nil {
		return Results{}, err
	}
	if done.Tree == "" { // nothing was to be run; the results say on which tree
		commit, err := build()
		if err != nil {
			return Results{}, err
		}
		if done.Tree, err = c.Repo.TreeID(ctx, commit); err != nil {
			return Results{}, err
		}
	}
	out := Results{Schema: Schema, Tree: done.Tree, PolicySHA256: p.Sum(), Executions: []Execution{}}
	told := map[string]bool{}
	for _, run := range done.Runs {
		if k := key(run.Command.Argv, run.Command.Shell); !told[k] {
			told[k] = true
			out.Executions = append(out.Executions, run.Execution)
		}
	}
	return out, nil
}

// run runs what is to be run of the wanted commands, each once a tree: what ran
// on the same tree before is not run again.
func (c Checker) run(ctx context.Context, p policy.Policy, wanted []Wanted, build Build) (Done, error) {
	done := Done{PolicySHA256: p.Sum(), Ran: maps.Clone(c.Ran), source: "here"}
	if c.Results != nil {
		done.source = "results"
	}
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(w Wanted) bool { return w.Message != "" })
	if len(wanted) == 0 {
		return done, nil
	}
	commit, err := build()
	if err != nil {
		return done, err
	}
	if done.Tree, err = c.Repo.TreeID(ctx, commit); err != nil {
		return done, err
	}
	if done.Ran == nil {
		done.Ran = Ran{}
	}
	var left []policy.Check
	asked := map[string]bool{}
	for _, w := range wanted {
		k := done.Ran.key(done.Tree, w.Command)
		if _, ran := done.Ran[k]; !asked[k] && (!ran || c.Results != nil) {
			left = append(left, policy.Check{Command: w.Command, Required: w.Required})
		}
		asked[k] = true
	}
	if len(left) > 0 {
		executed, err := c.execute(ctx, p, done.Tree, commit, left)
		if err == nil && len(executed) != len(left) {
			err = fmt.Errorf("%d of %d commands have an outcome", len(executed), len(left))
		}
		if err != nil {
			return done, err
		}
		for i, e := range executed {
			done.Ran[done.Ran.key(done.Tree, left[i].Command)] = e
		}
	}
	for _, w := range wanted {
		done.Runs = append(done.Runs, CommandRun{w, done.Ran[done.Ran.key(done.Tree, w.Command)]})
	}
	return done, nil
}

// execute runs commands, or takes what came of them elsewhere.
func (c Checker) execute(ctx context.Context, p policy.Policy, tree, commit string, commands []policy.Check) ([]Execution, error) {
	if c.Results != nil {
		executed, err := c.Results.For(tree, p.Sum(), commands)
		for _, e := range executed {
			if e.Protection.Mode == string(policy.FullAccess) && p.Sandbox != policy.FullAccess {
				err = errors.New("a command ran without the sandbox that the Policy asks for")
			}
		}
		if err != nil {
			return nil, &fault.Error{Kind: fault.Refused, Message: err.Error(), Try: "countersign checks TX --out FILE", Cause: err}
		}
		return executed, nil
	}
	if c.Commands == nil {
		return nil, &fault.Error{
			Kind: fault.Refused, Message: fmt.Sprintf("%q has to run first, but commands do not run here", commands[0].Command.Text()),
			Try: "countersign checks TX --out results.json", Cause: ErrNoCommands,
		}
	}
	mode, err := c.Mode(p)
	if err == nil && mode == policy.ReadOnly {
		err = ErrReadOnly
	}
	if err != nil {
		return nil, err
	}
	files, err := c.Repo.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	return c.Commands.Run(ctx, c.Secrets, mode, files, commands)
}

// Mode is the stricter of the sandbox that was asked for and the Policy's; full
// access needs the word of both.
func (c Checker) Mode(p policy.Policy) (policy.Sandbox, error) {
	switch {
	case p.Sandbox == policy.ReadOnly || c.Sandbox == policy.ReadOnly:
		return policy.ReadOnly, nil
	case c.Sandbox == policy.FullAccess && p.Sandbox != policy.FullAccess:
		return "", fault.Refuse(
			fmt.Sprintf("the sandbox %s was asked for, and the Policy says %s", c.Sandbox, p.Sandbox), "leave --sandbox out, or let the Policy's key sandbox allow it",
		)
	case c.Sandbox == policy.FullAccess:
		return policy.FullAccess, nil
	}
	return policy.WorkspaceWrite, nil
}

// notFound is what shells exit with for a program that they do not find (POSIX,
// "Exit Status for Commands").
const notFound = 127

// failure says how a command failed, and its last words; "" where it did not.
func (c Checker) failure(e Execution) string {
	how := fmt.Sprintf("exit code %d", e.ExitCode)
	switch {
	case e.OK():
		return ""
	case e.Error != "":
		return e.Error
	case e.TimedOut:
		how = "ran out of time"
	case e.Signal != "":
		how = "was ended by a signal: " + e.Signal
	case e.ExitCode == notFound:
		how += ", which mostly means that a program is not there in the sandbox"
	}
	lastLine := func(output string) string {
		output = strings.TrimSpace(output)
		return ledger.OneLine(c.Secrets.Text(output[strings.LastIndexByte(output, '\n')+1:]), 200)
	}
	if last := cmp.Or(lastLine(e.Stderr), lastLine(e.Stdout)); last != "" {
		return how + ": " + last
	}
	return how
}

// commandDoc is the artifact with all that is known of a command that ran.
type commandDoc struct {
	Schema    string    `json:"schema"`
	Asked     string    `json:"asked"` // by whom: the Policy's key, or the Proposal's id
	Tree      string    `json:"tree"`
	Source    string    `json:"source"`
	Execution Execution `json:"execution"`
}

// Record adds the commands that ran to what a stage records: what the ledger has
// already, as it ran before the apply, is not told again after it, unless a validate
// has found something in between.
func (d Done) Record(s *writing.Stage, secrets redact.Finder, when string) {
	item, _ := writing.FileChange(s.Log)
	again := len(ledger.Of[*ledger.ValidateComplete](s.Log)) > 0
	for _, run := range d.Runs {
		e := run.Execution
		file := s.Artifact("command", commandDoc{"countersign/command/1", run.ID, d.Tree, d.source, e})
		if told := func(c *ledger.CommandItem) bool { return c.Item.Metadata.Artifact.Path == file }; !again && slices.ContainsFunc(ledger.Of[*ledger.CommandItem](s.Log), told) {
			continue
		}
		status := "completed"
		if !e.OK() {
			status = "failed"
		}
		s.Event(&ledger.CommandItem{TransactionID: item.TransactionID, TurnID: item.TurnID, Item: ledger.Command{
			ID: writing.NextItem(s.Log), Type: ledger.CommandExecution, Op: "final", Status: status,
			Command: strings.Join(e.Argv, " "), CWD: ".", AggregatedOutput: writing.Beginning(secrets.Text(e.Stdout + e.Stderr)),
			ExitCode: e.ExitCode, DurationMS: int(e.DurationMS),
			Metadata: ledger.CommandMetadata{
				Artifact: ledger.ArtifactRef{ArtifactID: strings.TrimSuffix(path.Base(file), ".json"), Path: file},
				Required: run.Wanted.Required, Tree: d.Tree, When: when,
			},
		}})
	}
}

// ErrNoCommands is the cause of an error that says that there are commands to run, and that they are not run here.
var ErrNoCommands = errors.New("commands do not run here")

// ErrReadOnly says that the sandbox is read-only, so that nothing is applied and no
// command is run.
var ErrReadOnly = fault.Refuse("the sandbox is read-only: nothing is applied", "the Policy's key sandbox or --sandbox says read-only")
