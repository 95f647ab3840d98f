package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
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
	base, err := r.Repo.Tree(ctx, p.Base)
	if err != nil {
		return err
	}
	build := func() (string, error) {
		if p.Commit != "" {
			return p.Commit, nil
		}
		return r.builder().Build(ctx, p.Change, "", "")
	}
	p.checked, err = r.runChecks(ctx, g.rules.Policy, g.Ledger, g.log, after(p.Set, base), build)
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
		return r.builder().Build(ctx, effect.Change{Log: log, Verdict: g.Verdict, Set: set, Base: begun.BaseCommit}, "", "")
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

// commandDoc is the artifact with all that is known of a command that ran.
type commandDoc struct {
	Schema    string           `json:"schema"`
	Asked     string           `json:"asked"` // by whom: the Policy's key, or the Proposal's id
	Tree      string           `json:"tree"`
	Source    string           `json:"source"` // "here", or "results": somebody's word
	Execution checks.Execution `json:"execution"`
}

// record adds the commands that ran: what the ledger has already, as it ran
// before the apply, is not told again after it.
func (r *Runner) recordChecks(s *ledger.Stage, c checked, when string) {
	item, _ := s.Log.FileChange()
	for _, run := range c.runs {
		e := run.execution
		file := s.Artifact("command", commandDoc{"countersign/command/1", run.ID, c.tree, r.ranAt(), e})
		if told(s.Log, file) {
			continue
		}
		status := "completed"
		if !e.OK() {
			status = "failed"
		}
		s.Event(&ledger.CommandItem{TransactionID: item.TransactionID, TurnID: item.TurnID, Item: ledger.Command{
			ID: nextItem(s.Log), Type: ledger.CommandExecution, Op: "final", Status: status,
			Command: strings.Join(e.Argv, " "), CWD: ".", AggregatedOutput: ledger.Beginning(r.Secrets.Text(e.Stdout + e.Stderr)),
			ExitCode: e.ExitCode, DurationMS: int(e.DurationMS),
			Metadata: ledger.CommandMetadata{
				Artifact: ledger.ArtifactRef{ArtifactID: strings.TrimSuffix(path.Base(file), ".json"), Path: file},
				Required: run.Required, Tree: c.tree, When: when,
			},
		}})
	}
}

// ranAt says where the commands of this command of ours ran.
func (r *Runner) ranAt() string {
	if r.Results != nil {
		return "results"
	}
	return "here"
}

// told reports whether an item names an artifact as its evidence.
func told(log *ledger.Log, file string) bool {
	return slices.ContainsFunc(ledger.Of[*ledger.CommandItem](log), func(c *ledger.CommandItem) bool {
		return c.Item.Metadata.Artifact.Path == file
	})
}

// nextItem is the id of the next item of a log, having counted those there are.
func nextItem(log *ledger.Log) string {
	ids := map[string]bool{}
	for _, p := range log.Payloads() {
		switch p := p.(type) {
		case *ledger.TurnItem:
			ids[p.Item.ID] = true
		case *ledger.CommandItem:
			ids[p.Item.ID] = true
		case *ledger.TraceItem:
			ids[p.Item.ID] = true
		}
	}
	return fmt.Sprintf("item_%d", len(ids)+1)
}

// recordFailed records an apply that its checks refused before it began.
func (r *Runner) recordFailed(ctx context.Context, failed *ChecksError, done checked) error {
	_, _, err := update(ctx, r, transaction(failed.ID), func(snap ledger.Snapshot) (try[none], error) {
		g, err := r.judge(ctx, snap, failed.ID, nil)
		if err != nil {
			return nothing(none{}, err)
		}
		if _, applying := g.log.OpenApply(); applying || g.Transaction().Status != ledger.Proposed {
			return nothing(none{}, nil)
		}
		s := r.stage(g.log)
		r.recordChecks(s, done, "before")
		s.Status(ledger.Failed, r.oneLine(failed.Violations[0].Message, 300))
		return recording(none{}, s, ledger.Title{Stage: "apply", Outcome: string(ledger.Failed), Subject: "not begun: " + failed.Violations[0].Message})
	})
	if err != nil {
		return err
	}
	return failed
}
