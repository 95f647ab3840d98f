package pipeline_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
)

// A workshop is a world's commits where more can be built, on no branch, and
// where commands run: "has WORD FILE" succeeds if the file has the word.
type workshop struct {
	*commits
	built map[string]fstest.MapFS
	ran   []string // trees and commands
	known redact.Finder
}

func (w *workshop) Tree(ctx context.Context, commit string) (fs.FS, error) {
	if tree, ok := w.built[commit]; ok {
		return tree, nil
	}
	return w.commits.Tree(ctx, commit)
}

// BuildCommit makes the one commit that a test needs.
func (w *workshop) BuildCommit(ctx context.Context, parent string, files []patch.Change, _ code.Commit) (string, error) {
	base, err := w.Tree(ctx, parent)
	if err != nil {
		return "", err
	}
	tree := maps.Clone(base.(fstest.MapFS))
	for _, f := range files {
		delete(tree, f.Path)
		if f.After != nil {
			tree[f.Path] = &fstest.MapFile{Data: f.After.Data, Mode: 0o644}
		}
	}
	id := strings.Repeat("b", 40)
	w.built[id] = tree
	return id, nil
}

func (w *workshop) Run(_ context.Context, known redact.Finder, _ policy.Sandbox, tree fs.FS, commands []policy.Check) ([]checks.Execution, error) {
	w.known = known
	var out []checks.Execution
	for _, c := range commands {
		w.ran = append(w.ran, strings.Join(c.Argv, " "))
		data, err := fs.ReadFile(tree, c.Argv[2])
		e := checks.Execution{Argv: c.Argv, Required: c.Required, Stdout: string(data), StdoutBytes: int64(len(data)), Protection: checks.Protection{Mode: "workspace-write", Namespaces: []string{}}}
		if err != nil || !strings.Contains(string(data), c.Argv[1]) {
			e.ExitCode = 1
		}
		out = append(out, e)
	}
	return out, nil
}

// commanded is a world whose Policy runs commands, each required unless it ends
// in "?".
func commanded(t *testing.T, commands ...string) (*world, *workshop) {
	w := newWorld(t)
	for _, c := range commands {
		line, optional := strings.CutSuffix(c, "?")
		w.policy.Commands.Run = append(w.policy.Commands.Run, policy.Check{
			Command: policy.Command{Argv: strings.Fields(line), Timeout: policy.DefaultTimeout}, Required: !optional,
		})
	}
	return w, &workshop{commits: w.repo, built: map[string]fstest.MapFS{}}
}

// in is the program where commands can run.
func (w *world) in(shop *workshop, who ledger.Actor) *pipeline.Runner {
	r := w.as(who)
	r.Repo, r.Refs, r.Commands = shop, shop, shop
	return r
}

func (w *world) commandItems(tx string) []ledger.Command {
	w.Helper()
	log := w.log(tx)
	var out []ledger.Command
	for _, item := range ledger.Of[*ledger.CommandItem](log) {
		out = append(out, item.Item)
	}
	return out
}

// TestCommandsRunBeforeAndAfter: before anything is written, on what will be;
// after it once more, but not twice on one tree in one command of ours.
func TestCommandsRunBeforeAndAfter(t *testing.T) {
	w, shop := commanded(t, "has world greet.txt", "has nothing other.txt?")
	g := w.approved()
	r := w.in(shop, bot)
	if _, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	w.holds(fixed)
	tx := g.Transaction().TransactionID
	w.sound(tx, ledger.Applied)
	if len(shop.ran) != 2 || len(w.commandItems(tx)) != 2 {
		t.Errorf("ran %q, recorded %v", shop.ran, w.commandItems(tx))
	}
	if v, err := w.in(shop, bot).Validate(t.Context(), tx); err != nil || !v.Completed {
		t.Fatalf("%+v %v", v, err)
	}
	w.sound(tx, ledger.Completed)
	items := w.commandItems(tx)
	if len(shop.ran) != 4 {
		t.Errorf("ran %q", shop.ran)
	}
	for i, want := range []struct{ status, command string }{{"completed", "has world greet.txt"}, {"failed", "has nothing other.txt"}} {
		if got := items[i]; got.Status != want.status || got.Command != want.command || got.Metadata.When != "before" {
			t.Errorf("%+v", got)
		}
	}

	w, shop = commanded(t, "has world greet.txt")
	g = w.approved()
	out, err := w.in(shop, bot).Advance(t.Context(), g.Transaction().TransactionID, pipeline.Ahead{Until: pipeline.StageValidate})
	if err != nil || !out.Validated.Completed {
		t.Fatalf("%+v %v", out.Validated, err)
	}
	if len(shop.ran) != 1 {
		t.Errorf("one command of ours ran %q on one tree", shop.ran)
	}
}

// TestFailedCommand: nothing is written, the failure is on record, and what was
// approved can be tried again, for instance under a Policy that was mended.
func TestFailedCommand(t *testing.T) {
	w, shop := commanded(t, "has mars greet.txt", "has one greet.txt")
	g := w.approved()
	tx := g.Transaction().TransactionID
	var failed *pipeline.ChecksError
	for range 2 { // the second finds it failed already
		if _, err := w.in(shop, bot).Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &failed) {
			t.Fatalf("%v", err)
		}
	}
	w.holds(base)
	w.sound(tx, ledger.Failed)
	if items := w.commandItems(tx); len(items) != 2 || items[0].Status != "failed" || items[1].Status != "completed" {
		t.Errorf("%+v", items)
	}
	w.policy.Commands.Run = w.policy.Commands.Run[1:]
	if _, err := w.in(shop, bot).Apply(t.Context(), g, pipeline.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	w.holds(fixed)
	if v, err := w.in(shop, bot).Validate(t.Context(), tx); err != nil || !v.Completed {
		t.Fatalf("%+v %v", v, err)
	}
	w.sound(tx, ledger.Completed)
}

// TestFailedAfterwards: a command that fails on what was applied is recorded once, with
// what it printed; when it passes, that is recorded too, though it came out so before the apply.
func TestFailedAfterwards(t *testing.T) {
	w, shop := commanded(t, "has world greet.txt")
	g := w.approved()
	tx := g.Transaction().TransactionID
	if _, err := w.in(shop, bot).Apply(t.Context(), g, pipeline.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := w.in(shop, bot)
		r.Commands = failing{}
		if v, err := r.Validate(t.Context(), tx); err != nil || v.Report.OK || v.Report.Violations[0].RuleID != "TEST" {
			t.Fatalf("%+v %v", v, err)
		}
	}
	w.sound(tx, ledger.Applied)
	if v, err := w.in(shop, bot).Validate(t.Context(), tx); err != nil || !v.Completed {
		t.Fatalf("%+v %v", v, err)
	}
	w.sound(tx, ledger.Completed)
	var got []string
	for _, c := range w.commandItems(tx) {
		got = append(got, c.Metadata.When+" "+c.Status)
	}
	if want := "before completed, after failed, after completed"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// failing are commands of which none succeeds.
type failing struct{}

func (failing) Run(_ context.Context, _ redact.Finder, _ policy.Sandbox, _ fs.FS, commands []policy.Check) (out []checks.Execution, err error) {
	for _, c := range commands {
		out = append(out, checks.Execution{Argv: c.Argv, Required: c.Required, ExitCode: 1, Protection: checks.Protection{Mode: "workspace-write", Namespaces: []string{}}})
	}
	return out, nil
}

// TestT19NoCommandsHere: where commands do not run, what they are needed for
// does not happen; what came of them elsewhere is taken for that tree alone.
func TestT19NoCommandsHere(t *testing.T) {
	w, shop := commanded(t, "has world greet.txt")
	g := w.approved()
	r := w.in(shop, bot)
	r.Commands = nil
	if _, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.Is(err, checks.ErrNoCommands) {
		t.Errorf("%v", err)
	}
	results, _, err := w.in(shop, bot).CheckTransaction(t.Context(), w.ledger(), g.Transaction().TransactionID, pipeline.ApplyOptions{})
	if err != nil || len(results.Executions) != 1 || !results.Executions[0].OK() {
		t.Fatalf("%+v %v", results, err)
	}
	for what, edit := range map[string]func(*checks.Results){
		"another tree":    func(r *checks.Results) { r.Tree = strings.Repeat("c", 40) },
		"another Policy":  func(r *checks.Results) { r.PolicySHA256 = "sha256:" + strings.Repeat("c", 64) },
		"no command":      func(r *checks.Results) { r.Executions = nil },
		"another command": func(r *checks.Results) { r.Executions = []checks.Execution{{Argv: []string{"true"}}} },
	} {
		forged := results
		edit(&forged)
		r := w.in(shop, bot)
		r.Commands, r.Results = nil, &forged
		if _, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.Is(err, fault.Refused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.holds(base)
	r = w.in(shop, bot)
	r.Commands, r.Results = nil, &results
	if _, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	w.holds(fixed)
	w.sound(g.Transaction().TransactionID, ledger.Applied)
}

// TestT19SandboxModes: the stricter of what is asked for and what the Policy
// says; full access needs both.
func TestT19SandboxModes(t *testing.T) {
	for _, c := range []struct {
		asked, policy policy.Sandbox
		applies       bool
	}{
		{"", policy.WorkspaceWrite, true},
		{"", policy.FullAccess, true},
		{"", policy.ReadOnly, false},
		{policy.ReadOnly, policy.WorkspaceWrite, false},
		{policy.WorkspaceWrite, policy.ReadOnly, false},
		{policy.FullAccess, policy.ReadOnly, false},
		{policy.FullAccess, policy.WorkspaceWrite, false},
		{policy.FullAccess, policy.FullAccess, true},
	} {
		w := newWorld(t)
		w.policy.Sandbox = c.policy
		g := w.approved()
		r := w.as(bot)
		r.Sandbox = c.asked
		_, err := r.Apply(t.Context(), g, pipeline.ApplyOptions{})
		if (err == nil) != c.applies {
			t.Errorf("%q under a Policy of %q: %v", c.asked, c.policy, err)
		}
		if !c.applies {
			w.holds(base)
		}
	}
}

// TestT46CommandsKnowThePatch: what commands print is looked through with what
// is known of the patch at hand, also where many Runners share the commands. A
// value that is a secret by its line alone would else be cut in two unseen.
func TestT46CommandsKnowThePatch(t *testing.T) {
	w, shop := commanded(t, "has x conf.txt?")
	value := "Zk9vQ2mX7pLr4TsW8yBn"
	files := map[string]string{"conf.txt": "password = \"" + value + "\"\nold\n"}
	w.repo.commit(files)
	w.write(files)
	tx := w.proposed("diff --git a/conf.txt b/conf.txt\n--- a/conf.txt\n+++ b/conf.txt\n@@ -1,2 +1,2 @@\n password = \"" + value + "\"\n-old\n+new\n")
	parent := w.in(shop, bot)
	if parent.Secrets.Text(value) != value {
		t.Fatal("the value alone is taken for a secret")
	}
	r := parent.With(pipeline.Known{})
	g, err := r.Gate(t.Context(), tx)
	if err == nil {
		_, err = r.Apply(t.Context(), g, pipeline.ApplyOptions{})
	}
	fatal(t, err)
	if shop.known == nil || shop.known.Text(value) == value {
		t.Error("the commands' output is looked through without the patch's secret")
	}
}
