package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// checked is what came of all checks of a tree, and the commands that ran.
type checked struct {
	policy  string // the Policy's Sum
	tree    string
	results []checks.TestResult
	runs    []commandRun
	ran     map[string]checks.Execution // all that ran in this command, by tree and command
}

type commandRun struct {
	checks.Wanted
	execution checks.Execution
}

// check runs the checks on the tree that a change makes of its base, before
// anything is written: commands in the sandbox, on a copy.
func (r *Runner) check(ctx context.Context, g Gated, p *prepared, dryRun bool) error {
	base, err := r.Repo.Tree(ctx, p.base)
	if err != nil {
		return err
	}
	build := func() (string, error) {
		if p.commit != "" {
			return p.commit, nil
		}
		return r.build(ctx, g, *p, "", nil)
	}
	p.checked, err = r.runChecks(ctx, g.rules.Policy, g.Ledger, g.log, after(p.set, base), build)
	if err != nil {
		return err
	}
	p.known.ran = p.checked.ran
	found := checks.Failures(p.checked.results)
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
func after(set patch.Patchset, base fs.FS) checks.ReadFile {
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
func (r *Runner) checkApplied(ctx context.Context, snap ledger.Snapshot, log *ledger.Log, read checks.ReadFile) (checked, error) {
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
	g.Verdict = g.verdict(ctx, at)
	return r.runChecks(ctx, g.rules.Policy, snap, log, read, func() (string, error) {
		if done := log.LastApply(); done.CommitAfter != "" {
			return done.CommitAfter, nil
		}
		set, err := r.onCommit(ctx, snap.Tree, log.Transaction(), begun.BaseCommit)
		if err != nil {
			return "", err
		}
		return r.build(ctx, g, prepared{set: set, base: begun.BaseCommit}, "", nil)
	})
}

// runChecks runs a Proposal's tests on files that read returns, and the
// commands on the tree of a commit that is built only if there are any.
func (r *Runner) runChecks(ctx context.Context, p policy.Policy, snap ledger.Snapshot, log *ledger.Log, read checks.ReadFile, build func() (string, error)) (checked, error) {
	doc, err := checks.ReadAsked(snap.Tree, log.Transaction())
	if err != nil {
		return checked{}, err
	}
	out := checked{policy: p.Sum(), ran: r.ran}
	if out.results, err = checks.RunTests(doc, read); err != nil {
		return checked{}, err
	}
	wanted := checks.WantedCommands(p, doc)
	if err := r.runCommands(ctx, p, wanted, build, &out); err != nil {
		return checked{}, err
	}
	for _, w := range wanted {
		if w.Message != "" {
			out.results = append(out.results, w.Result(false, w.Message))
		}
	}
	for _, c := range out.runs {
		out.results = append(out.results, c.Result(c.execution.OK(), r.failure(c.execution)))
	}
	return out, nil
}

// failure says how a command failed, and its last words; "" where it did not.
func (r *Runner) failure(e checks.Execution) string {
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
	for _, output := range []string{e.Stderr, e.Stdout} {
		if last := r.oneLine(lastLine(output), 200); last != "" {
			return how + ": " + last
		}
	}
	return how
}

// notFound is what shells exit with for a program that they do not find (POSIX,
// "Exit Status for Commands").
const notFound = 127

func lastLine(output string) string {
	output = strings.TrimSpace(output)
	return output[strings.LastIndexByte(output, '\n')+1:]
}

// CheckTree runs the commands of the Policy on the tree of a commit.
func (r *Runner) CheckTree(ctx context.Context, commit string) (checks.Results, error) {
	rules, err := r.rules(ctx, "")
	if err != nil {
		return checks.Results{}, err
	}
	var out checked
	wanted := checks.WantedCommands(rules.Policy, checks.Asked{})
	err = r.runCommands(ctx, rules.Policy, wanted, func() (string, error) { return commit, nil }, &out)
	if err == nil && out.tree == "" {
		out.tree, err = r.Repo.TreeID(ctx, commit)
	}
	return out.handOver(rules.Policy), err
}

// CheckTransaction runs the commands that a transaction needs on the tree that
// its patch makes of what it would be applied to, and records nothing.
func (r *Runner) CheckTransaction(ctx context.Context, snap ledger.Snapshot, id string, o ApplyOptions) (checks.Results, Known, error) {
	g, err := r.judge(ctx, snap, id, nil)
	if err != nil {
		return checks.Results{}, r.known(), err
	}
	to, err := r.effect(ctx, g, o, r.reader())
	if err != nil {
		return checks.Results{}, r.known(), err
	}
	p, err := r.approvedPatch(ctx, to, g, snap)
	if err != nil {
		return checks.Results{}, r.known(), err
	}
	r = r.With(p.known)
	doc, err := checks.ReadAsked(snap.Tree, g.Transaction())
	if err != nil {
		return checks.Results{}, r.known(), err
	}
	var commit string
	build := func() (string, error) {
		var err error
		commit, err = r.build(ctx, g, p, "", nil)
		return commit, err
	}
	var out checked
	if err = r.runCommands(ctx, g.rules.Policy, checks.WantedCommands(g.rules.Policy, doc), build, &out); err != nil {
		return checks.Results{}, r.known(), err
	}
	if commit == "" { // nothing was to be run; the results say on which tree
		if commit, err = build(); err == nil {
			out.tree, err = r.Repo.TreeID(ctx, commit)
		}
	}
	return out.handOver(g.rules.Policy), r.known(), err
}

// handOver is what another job can take these checks from.
func (c checked) handOver(p policy.Policy) checks.Results {
	out := checks.Results{Schema: checks.Schema, Tree: c.tree, PolicySHA256: p.Sum(), Executions: []checks.Execution{}}
	told := map[string]bool{}
	for _, run := range c.runs {
		if k := key(c.tree, run.Command); !told[k] {
			told[k] = true
			out.Executions = append(out.Executions, run.execution)
		}
	}
	return out
}

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

// runCommands runs what is to be run of the wanted commands, each once a tree.
func (r *Runner) runCommands(ctx context.Context, p policy.Policy, wanted []checks.Wanted, build func() (string, error), out *checked) error {
	var commands []policy.Check
	for _, w := range wanted {
		if w.Message == "" && !has(commands, w.Command) {
			commands = append(commands, policy.Check{Command: w.Command, Required: w.Required})
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
		if w.Message == "" {
			out.runs = append(out.runs, commandRun{w, out.ran[key(out.tree, w.Command)]})
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

// A ReadOnlyError says that the sandbox is read-only, so that nothing is
// applied and no command is run.
type ReadOnlyError struct{}

func (*ReadOnlyError) Error() string { return "the sandbox is read-only: nothing is applied" }

// A SandboxError is a mode that was asked for and that the Policy does not allow.
type SandboxError struct{ Want, Have policy.Sandbox }

func (e *SandboxError) Error() string {
	return fmt.Sprintf("the sandbox %s was asked for, and the Policy says %s", e.Want, e.Have)
}

// sandboxMode is the stricter of what was asked for and what the Policy says;
// full access needs the word of both.
func (r *Runner) sandboxMode(p policy.Policy) (policy.Sandbox, error) {
	have := p.Sandbox
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
