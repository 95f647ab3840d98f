package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// checked is what came of all checks of a tree, and the commands that ran.
type checked struct {
	policy  string // the Policy's Sum
	tree    string
	results []TestResult
	runs    []commandRun
	ran     map[string]checks.Execution // all that ran in this command, by tree and command
}

type commandRun struct {
	wanted
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
func (r *Runner) checkApplied(ctx context.Context, snap ledger.Snapshot, log *ledger.Log, read readFile) (checked, error) {
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
func (r *Runner) runChecks(ctx context.Context, p policy.Policy, snap ledger.Snapshot, log *ledger.Log, read readFile, build func() (string, error)) (checked, error) {
	doc, err := readChecks(snap.Tree, log.Transaction())
	if err != nil {
		return checked{}, err
	}
	out := checked{policy: p.Sum(), ran: r.ran}
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
		out.results = append(out.results, TestResult{c.id, c.kind, c.target, c.required, c.execution.OK(), r.failure(c.execution)})
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
	wanted := wantedCommands(rules.Policy, checksDoc{})
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
	doc, err := readChecks(snap.Tree, g.Transaction())
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
	if err = r.runCommands(ctx, g.rules.Policy, wantedCommands(g.rules.Policy, doc), build, &out); err != nil {
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
		if k := key(c.tree, run.command); !told[k] {
			told[k] = true
			out.Executions = append(out.Executions, run.execution)
		}
	}
	return out
}
