package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/proposal"
)

// Commands runs commands, each on a copy of a commit's tree of its own, in the
// sandbox. A sandbox that is not there is an error; a command that fails is not.
type Commands interface {
	Run(ctx context.Context, mode policy.Sandbox, tree fs.FS, commands []policy.Check) ([]checks.Execution, error)
}

// A ReadOnlyError says that the sandbox is read-only, so that nothing is
// applied and no command is run.
type ReadOnlyError struct{}

func (*ReadOnlyError) Error() string { return "the sandbox is read-only: nothing is applied" }

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

// A SandboxError is a mode that was asked for and that the Policy does not allow.
type SandboxError struct{ Want, Have policy.Sandbox }

func (e *SandboxError) Error() string {
	return fmt.Sprintf("the sandbox %s was asked for, and the Policy says %s", e.Want, e.Have)
}

// sandboxMode is the stricter of what was asked for and what the Policy says;
// full access needs the word of both.
func (r *Runner) sandboxMode(ctx context.Context) (policy.Sandbox, error) {
	rules, err := r.rules(ctx)
	if err != nil {
		return "", err
	}
	have := rules.Policy.Sandbox
	switch {
	case have == policy.ReadOnly || r.Sandbox == policy.ReadOnly:
		return policy.ReadOnly, nil
	case r.Sandbox == policy.FullAccess && have != policy.FullAccess:
		return "", &SandboxError{r.Sandbox, have}
	case r.Sandbox == policy.FullAccess:
		return policy.FullAccess, nil
	}
	return policy.WorkspaceWrite, nil
}

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
		out = append(out, wanted{fmt.Sprintf("commands.run[%d]", i), "command", text(c.Command), c.Required, c.Command, ""})
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

// text is a command as a Proposal would write it.
func text(c policy.Command) string { return strings.Join(c.Argv, " ") }

// checked is what came of all checks of a tree, and the commands that ran.
type checked struct {
	policy  string // the Policy's Sum
	tree    string
	results []TestResult
	runs    []commandRun
}

type commandRun struct {
	wanted
	execution checks.Execution
}

// check runs the checks on the tree that a change makes of its base, before
// anything is written: commands in the sandbox, on a copy.
func (r *Runner) check(ctx context.Context, to effect, g Gated, p *prepared, dryRun bool) error {
	snap, err := r.last(ctx, transaction(g.Transaction().TransactionID)...)
	if err != nil {
		return err
	}
	base, err := r.Repo.Tree(ctx, p.base)
	if err != nil {
		return err
	}
	build := func() (string, error) {
		if p.commit != "" {
			return p.commit, nil
		}
		return r.build(ctx, g, *p, nil)
	}
	p.checked, err = r.runChecks(ctx, g.rules.Policy, snap, g.log, after(p.set, base), build)
	if err != nil {
		return err
	}
	found := failures(p.checked.results)
	if len(found) == 0 {
		return nil
	}
	failed := &ChecksError{g.Transaction().TransactionID, found}
	if dryRun || len(p.checked.runs) == 0 {
		return failed
	}
	return r.recordFailed(ctx, failed, p.checked)
}

// after reads files as a patch leaves them.
func after(set patch.Patchset, base fs.FS) readFile {
	files := map[string]*patch.File{}
	for _, f := range set.Files() {
		files[f.Path] = f.After
	}
	return func(path string, _ *patch.File) (*patch.File, error) {
		if f, ok := files[path]; ok {
			return f, nil
		}
		return patch.Lookup(base, path)
	}
}

// checkApplied runs the checks on what was applied.
func (r *Runner) checkApplied(ctx context.Context, snap Snapshot, log *ledger.Log, read readFile) (checked, error) {
	g := Gated{log: log}
	start, _ := appliedAs(log)
	begun := log.Payloads()[start].(*ledger.ApplyStart)
	var err error
	if g.rules, err = recorded(snap.Tree, log, begun.Policy); err != nil {
		return checked{}, err
	}
	if g.denials, err = ledger.Denials(snap.Tree, log.Transaction().PatchID()); err != nil {
		return checked{}, err
	}
	at, err := log.Time(start)
	if err != nil {
		return checked{}, err
	}
	g.Verdict = g.verdict(at)
	return r.runChecks(ctx, g.rules.Policy, snap, log, read, func() (string, error) {
		ends := ledger.Of[*ledger.ApplyComplete](log)
		if done := ends[len(ends)-1]; done.CommitAfter != "" {
			return done.CommitAfter, nil
		}
		set, err := r.onCommit(ctx, log.Transaction(), begun.BaseCommit)
		if err != nil {
			return "", err
		}
		return r.build(ctx, g, prepared{set: set, base: begun.BaseCommit}, nil)
	})
}

// runChecks runs a Proposal's tests on files that read returns, and the
// commands on the tree of a commit that is built only if there are any.
func (r *Runner) runChecks(ctx context.Context, p policy.Policy, snap Snapshot, log *ledger.Log, read readFile, build func() (string, error)) (checked, error) {
	doc, err := readChecks(snap.Tree, log.Transaction())
	if err != nil {
		return checked{}, err
	}
	out := checked{policy: p.Sum()}
	if out.results, err = runTests(doc, read); err != nil {
		return checked{}, err
	}
	wanted := wantedCommands(p, doc)
	if err := r.runCommands(ctx, p, wanted, build, &out); err != nil {
		return checked{}, err
	}
	for _, w := range wanted {
		if w.message != "" {
			out.results = append(out.results, TestResult{w.id, w.kind, w.target, w.required, false, w.message})
		}
	}
	for _, c := range out.runs {
		out.results = append(out.results, TestResult{c.id, c.kind, c.target, c.required, c.execution.OK(), failure(c.execution)})
	}
	return out, nil
}

// failure says how a command failed, "" where it did not.
func failure(e checks.Execution) string {
	switch {
	case e.OK():
		return ""
	case e.Error != "":
		return e.Error
	case e.TimedOut:
		return "ran out of time"
	case e.Signal != "":
		return "was ended by a signal: " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.ExitCode)
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
	if err := r.runOn(ctx, p, out.tree, commit, commands); err != nil {
		return err
	}
	for _, w := range wanted {
		if w.message == "" {
			out.runs = append(out.runs, commandRun{w, r.ran[key(out.tree, w.command)]})
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
// ran on the same tree in this command of ours is not run again.
func (r *Runner) runOn(ctx context.Context, p policy.Policy, tree, commit string, commands []policy.Check) error {
	if r.ran == nil {
		r.ran = map[string]checks.Execution{}
	}
	var left []policy.Check
	for _, c := range commands {
		if _, known := r.ran[key(tree, c.Command)]; !known || r.Results != nil {
			left = append(left, c)
		}
	}
	if len(left) == 0 {
		return nil
	}
	done, err := r.execute(ctx, p, tree, commit, left)
	if err == nil && len(done) != len(left) {
		err = fmt.Errorf("%d of %d commands have an outcome", len(done), len(left))
	}
	if err != nil {
		return err
	}
	for i, e := range done {
		r.ran[key(tree, left[i].Command)] = e
	}
	return nil
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
		return nil, &NoCommandsError{text(commands[0].Command)}
	}
	mode, err := r.sandboxMode(ctx)
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
	return r.Commands.Run(ctx, mode, files, commands)
}

// CheckTree runs the commands of the Policy on the tree of a commit.
func (r *Runner) CheckTree(ctx context.Context, commit string) (checks.Results, error) {
	rules, err := r.rules(ctx)
	if err != nil {
		return checks.Results{}, err
	}
	var out checked
	wanted := wantedCommands(rules.Policy, checksDoc{})
	err = r.runCommands(ctx, rules.Policy, wanted, func() (string, error) { return commit, nil }, &out)
	if err == nil && out.tree == "" {
		out.tree, err = r.Repo.TreeID(ctx, commit)
	}
	return out.handOver(rules.Policy), err
}

// CheckTransaction runs the commands that a transaction needs on the tree that
// its patch makes of what it would be applied to, and records nothing.
func (r *Runner) CheckTransaction(ctx context.Context, id string, o ApplyOptions) (checks.Results, error) {
	snap, err := r.last(ctx, transaction(id)...)
	if err != nil {
		return checks.Results{}, err
	}
	g, err := r.judge(ctx, snap, id)
	if err != nil {
		return checks.Results{}, err
	}
	to, err := r.effect(g, o)
	if err != nil {
		return checks.Results{}, err
	}
	p, err := r.approvedPatch(ctx, to, g, snap)
	if err != nil {
		return checks.Results{}, err
	}
	doc, err := readChecks(snap.Tree, g.Transaction())
	if err != nil {
		return checks.Results{}, err
	}
	var commit string
	build := func() (string, error) {
		var err error
		commit, err = r.build(ctx, g, p, nil)
		return commit, err
	}
	var out checked
	if err = r.runCommands(ctx, g.rules.Policy, wantedCommands(g.rules.Policy, doc), build, &out); err != nil {
		return checks.Results{}, err
	}
	if commit == "" { // nothing was to be run; the results say on which tree
		if commit, err = build(); err == nil {
			out.tree, err = r.Repo.TreeID(ctx, commit)
		}
	}
	return out.handOver(g.rules.Policy), err
}

// handOver is what another job can take these checks from.
func (c checked) handOver(p policy.Policy) checks.Results {
	out := checks.Results{Schema: checks.Schema, Tree: c.tree, PolicySHA256: p.Sum(), Executions: []checks.Execution{}}
	told := map[string]bool{}
	for _, run := range c.runs {
		if k := key(c.tree, run.command); !told[k] {
			told[k] = true
			out.Executions = append(out.Executions, run.execution)
		}
	}
	return out
}
