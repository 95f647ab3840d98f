package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/proposal"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// Commands runs commands, each on a copy of a commit's tree of its own, in the
// sandbox. A sandbox that is not there is an error; a command that fails is not.
// What they print comes back without what known finds.
type Commands interface {
	Run(ctx context.Context, known *secret.Finder, mode policy.Sandbox, tree fs.FS, commands []policy.Check) ([]checks.Execution, error)
}

// A NoCommandsError says that there are commands to run, and that they are not
// run here.
type NoCommandsError struct{ Command string }

func (e *NoCommandsError) Error() string {
	return fmt.Sprintf("%q has to run first, and commands are not run here", e.Command)
}

// A ResultsError says that results which were given are not those of the
// commands, the tree and the Policy that they are needed for.
type ResultsError struct{ Err error }

func (e *ResultsError) Error() string { return e.Err.Error() }

func (e *ResultsError) Unwrap() error { return e.Err }

// A PolicyChangedError says that the Policy is not the one any more that the
// checks went by. Nothing was begun.
type PolicyChangedError struct{}

func (*PolicyChangedError) Error() string { return "the Policy changed while the checks ran" }

// A wanted is one thing that asks for a command. Message says why it is not
// run, "" where it is.
type wanted struct {
	id, kind, target string
	required         bool
	command          policy.Command
	message          string
}

// wantedCommands are those of the Policy, and those of a Proposal; what the
// Policy does not allow is not run, and has failed.
func wantedCommands(p policy.Policy, doc checksDoc) []wanted {
	var out []wanted
	for i, c := range p.Commands.Run {
		out = append(out, wanted{fmt.Sprintf("commands.run[%d]", i), "command", c.Command.Text(), c.Required, c.Command, ""})
	}
	ask := func(id, kind, target string, required bool) {
		w := wanted{id: id, kind: kind, target: target, required: required}
		var ok bool
		if w.command, ok = checks.Allowed(p, target); !ok {
			w.message = "not run: the Policy does not allow the command"
		}
		out = append(out, w)
	}
	tests := map[string]bool{}
	for _, t := range doc.required() {
		if tests[t.ID] = true; t.Type == proposal.CommandSuccess {
			ask(t.ID, t.Type, t.Target, t.Required)
		}
	}
	for _, a := range doc.Actions {
		if a.Type == proposal.ExecuteCommand || !tests[a.Target] { // else it names a test, which runs anyway
			ask(a.ID, a.Type, a.Target, a.Required)
		}
	}
	return out
}

// runCommands runs what is to be run of the wanted commands, each once a tree.
func (r *Runner) runCommands(ctx context.Context, p policy.Policy, wanted []wanted, build func() (string, error), out *checked) error {
	var commands []policy.Check
	for _, w := range wanted {
		if w.message == "" && !has(commands, w.command) {
			commands = append(commands, policy.Check{Command: w.command, Required: w.required})
		}
	}
	if len(commands) == 0 {
		return nil
	}
	commit, err := build()
	if err != nil {
		return err
	}
	if out.tree, err = r.Repo.TreeID(ctx, commit); err != nil {
		return err
	}
	if out.ran, err = r.runOn(ctx, p, out.tree, commit, commands); err != nil {
		return err
	}
	for _, w := range wanted {
		if w.message == "" {
			out.runs = append(out.runs, commandRun{w, out.ran[key(out.tree, w.command)]})
		}
	}
	return nil
}

func has(commands []policy.Check, c policy.Command) bool {
	for _, one := range commands {
		if one.Shell == c.Shell && one.Same(c.Argv) {
			return true
		}
	}
	return false
}

func key(tree string, c policy.Command) string {
	return fmt.Sprintf("%s %v %q", tree, c.Shell, c.Argv)
}

// runOn runs commands on a tree, or takes what came of them elsewhere. What
// ran on the same tree in this command of ours is not run again. All that ran so
// far is returned.
func (r *Runner) runOn(ctx context.Context, p policy.Policy, tree, commit string, commands []policy.Check) (map[string]checks.Execution, error) {
	ran := maps.Clone(r.ran)
	if ran == nil {
		ran = map[string]checks.Execution{}
	}
	var left []policy.Check
	for _, c := range commands {
		if _, known := ran[key(tree, c.Command)]; !known || r.Results != nil {
			left = append(left, c)
		}
	}
	if len(left) == 0 {
		return ran, nil
	}
	done, err := r.execute(ctx, p, tree, commit, left)
	if err == nil && len(done) != len(left) {
		err = fmt.Errorf("%d of %d commands have an outcome", len(done), len(left))
	}
	if err != nil {
		return nil, err
	}
	for i, e := range done {
		ran[key(tree, left[i].Command)] = e
	}
	return ran, nil
}

func (r *Runner) execute(ctx context.Context, p policy.Policy, tree, commit string, commands []policy.Check) ([]checks.Execution, error) {
	if r.Results != nil {
		done, err := r.Results.For(tree, p.Sum(), commands)
		for _, e := range done {
			if e.Protection.Mode == string(policy.FullAccess) && p.Sandbox != policy.FullAccess {
				err = errors.New("a command ran without the sandbox that the Policy asks for")
			}
		}
		if err != nil {
			return nil, &ResultsError{err}
		}
		return done, nil
	}
	if r.Commands == nil {
		return nil, &NoCommandsError{commands[0].Command.Text()}
	}
	mode, err := r.sandboxMode(p)
	if err == nil && mode == policy.ReadOnly {
		err = &ReadOnlyError{}
	}
	if err != nil {
		return nil, err
	}
	files, err := r.Repo.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	return r.Commands.Run(ctx, r.Secrets, mode, files, commands)
}

// Commands are the Policy's that run before the change is applied, in words.
func (g Gated) Commands() []string {
	var out []string
	for _, c := range g.rules.Policy.Commands.Run {
		out = append(out, c.Command.Text())
	}
	return out
}
