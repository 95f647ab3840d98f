package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

func TestMain(m *testing.M) {
	sandbox.Child()
	defer storetest.FilesInMemory(os.Getenv, os.Setenv)() // on a disk they take twice as long
	m.Run()
}

var box = sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, LookupEnv: os.LookupEnv, AcceptSeccomp: true}

// run runs commands in a scratch directory, which must be empty again. Where
// the system has no sandbox, the test is skipped.
func run(t *testing.T, tree fs.FS, commands ...policy.Check) []checks.Execution {
	t.Helper()
	scratch := t.TempDir()
	out, err := workshop(box, scratch).Run(context.Background(), tree, commands)
	left, _ := os.ReadDir(scratch)
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	var unavailable *sandbox.UnavailableError
	if errors.As(err, &unavailable) {
		t.Skip("no sandbox here: ", err, ": ", unavailable.Try)
	}
	if err != nil || len(out) != len(commands) {
		t.Fatalf("%d executions, %v", len(out), err)
	}
	for i, e := range out {
		if !slices.Equal(e.Argv, commands[i].Argv) || e.Shell != commands[i].Shell || e.Required != commands[i].Required {
			t.Errorf("execution %d is of %q", i, e.Argv)
		}
		if err := readBack(e); err != nil {
			t.Errorf("%q: %v", e.Argv, err)
		}
	}
	return out
}

func check(required bool, argv ...string) policy.Check {
	return policy.Check{Command: policy.Command{Argv: argv}, Required: required}
}

// readBack writes an Execution among Results, and reads them as another job does.
func readBack(e checks.Execution) error {
	line, err := checks.Results{
		Schema: checks.Schema, Tree: strings.Repeat("4b825dc6", 5), PolicySHA256: canon.Sum(nil), Executions: []checks.Execution{e},
	}.Line()
	if err == nil {
		_, err = checks.Parse(line)
	}
	return err
}

func shell(script string) policy.Check {
	return policy.Check{Command: policy.Command{Argv: []string{script}, Shell: true}, Required: true}
}

func TestRun(t *testing.T) {
	tree := treeFiles{"a": "content\n", "d/run": "+x #!/bin/sh\necho ran; echo err >&2; exit 3\n"}.tree()
	for _, c := range []struct {
		command        policy.Check
		code           int
		stdout, stderr string
	}{
		{check(true, "true"), 0, "", ""},
		{check(false, "false"), 1, "", ""},
		{check(true, "cat", "a"), 0, "content\n", ""},
		{check(true, "sh", "-c", "exit 42"), 42, "", ""},
		{check(true, "d/run"), 3, "ran\n", "err\n"},
		{check(true, "echo", "$HOME; id"), 0, "$HOME; id\n", ""},
		{shell("cat a | tr c k; exit 7"), 7, "kontent\n", ""},
		{check(true, "no-such-program-anywhere"), 127, "", ""},
		{shell("printf 'a\\377b'"), 0, "a\ufffdb", ""},
	} {
		e := run(t, tree, c.command)[0]
		if e.ExitCode != c.code || e.Stdout != c.stdout || c.stderr != "" && e.Stderr != c.stderr || e.OK() != (c.code == 0) {
			t.Errorf("%q: %+v", c.command.Argv, e)
		}
		if e.Signal != "" || e.TimedOut || e.Error != "" || e.Protection.Mode == "" {
			t.Errorf("%q: %+v", c.command.Argv, e)
		}
	}
}

// TestRunApart: what one command does to its copy, the next does not see; all
// are run, in order, whatever came of the others.
func TestRunApart(t *testing.T) {
	out := run(t, treeFiles{"a": "1", "d/b": "2"}.tree(),
		shell("echo evil > new; echo evil > a; rm -r d; exit 1"),
		shell("test ! -e new && cat a d/b"),
		check(false, "false"),
		check(true, "cat", "d/b"),
	)
	if out[0].OK() || out[1].Stdout != "12" || out[2].OK() || out[3].Stdout != "2" {
		t.Errorf("%+v", out)
	}
	if got := run(t, treeFiles{}.tree()); len(got) != 0 || got == nil {
		t.Errorf("no commands give %v", got)
	}
}

// TestRunLeavesNothing: a copy is removed whatever the command did to it.
func TestRunLeavesNothing(t *testing.T) {
	tree := treeFiles{"d/e/f": "1"}.tree()
	run(t, tree, shell("chmod 0 d/e; chmod 500 d ."))
	run(t, tree, shell("mkdir -p x/y/z; touch x/y/z/file; chmod 0 x/y/z x/y x .; kill -9 $$"))
	run(t, tree, shell("rm -r d; ln -s / d; ln -s .. up"))
}

func TestRunLongOutput(t *testing.T) {
	e := run(t, treeFiles{}.tree(), shell("echo begin; yes | head -c 3000000; echo end; yes no | head -c 100000 >&2"))[0]
	if !strings.HasPrefix(e.Stdout, "begin\ny\n") || !strings.HasSuffix(e.Stdout, "y\nend\n") || len(e.Stdout) > checks.MaxOutput || e.StdoutBytes != 3000010 {
		t.Errorf("%d bytes of %d: %.20q", len(e.Stdout), e.StdoutBytes, e.Stdout)
	}
	if !strings.Contains(e.Stderr, " bytes cut …\n") || e.StderrBytes != 100000 {
		t.Errorf("%d bytes of %d: %.20q", len(e.Stderr), e.StderrBytes, e.Stderr)
	}
}

func TestRunTimeout(t *testing.T) {
	c := check(true, "sleep", "60")
	c.Timeout = policy.Duration(100 * time.Millisecond)
	e := run(t, treeFiles{}.tree(), c)[0]
	if !e.TimedOut || e.OK() || e.DurationMS < 90 {
		t.Errorf("%+v", e)
	}
}

// TestT24Environment: a command sees the variables that its entry names, no
// others of ours.
func TestT24Environment(t *testing.T) {
	t.Setenv("CHECKS_TEST_TOKEN", "ghs_planted")
	t.Setenv("CHECKS_TEST_CACHE", "/planted/cache")
	with := check(true, "env")
	with.Env = []string{"CHECKS_TEST_CACHE", "CHECKS_TEST_UNSET"}
	got := run(t, treeFiles{}.tree(), with)[0].Stdout
	if strings.Contains(got, "planted\n") || strings.Contains(got, "TOKEN") || !strings.Contains(got, "CHECKS_TEST_CACHE=/planted/cache\n") || strings.Contains(got, "UNSET") {
		t.Errorf("environment:\n%s", got)
	}
	got = run(t, treeFiles{}.tree(), check(true, "env"))[0].Stdout
	if strings.Contains(got, "planted") {
		t.Errorf("environment:\n%s", got)
	}
}

// TestT31RunThroughLinks: links in the tree do not lead a command out of its copy.
func TestT31RunThroughLinks(t *testing.T) {
	outside, scratch := inside(t)
	tree := treeFiles{"file": "-> ../../precious", "full": "-> " + filepath.Join(outside, "precious"), "up": "-> ../.."}.tree()
	out, err := workshop(box, scratch).Run(context.Background(), tree, []policy.Check{
		shell("echo evil > file"), shell("echo evil > full"), shell("echo evil > up/precious; rm -r up/*; echo evil > up/new"),
	})
	var unavailable *sandbox.UnavailableError
	if errors.As(err, &unavailable) {
		t.Skip("no sandbox here: ", err)
	}
	if err != nil || len(out) != 3 {
		t.Fatal(err)
	}
	untouched(t, outside)
}

// TestT34NoRepository: a command finds no repository, and so none of its hooks,
// filters or settings.
func TestT34NoRepository(t *testing.T) {
	e := run(t, treeFiles{".gitattributes": "* filter=evil\n", ".gitmodules": "[submodule]\n"}.tree(), shell("ls -a; git rev-parse 2>/dev/null"))[0]
	if e.Stdout != ".\n..\n.gitattributes\n.gitmodules\n" || e.ExitCode == 0 {
		t.Errorf("%+v", e)
	}
}

// TestRunRefuses: where nothing can be run, there are no results.
func TestRunRefuses(t *testing.T) {
	tree, ctx := treeFiles{"a": "1"}.tree(), context.Background()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	with := func(change func(*sandbox.Sandbox)) sandbox.Sandbox {
		b := box
		change(&b)
		return b
	}
	one := []policy.Check{check(true, "true")}
	for _, c := range []struct {
		name, want string
		ctx        context.Context
		box        sandbox.Sandbox
		tree       fs.FS
		commands   []policy.Check
	}{
		{"read-only", "read-only", ctx, with(func(b *sandbox.Sandbox) { b.Mode = sandbox.ReadOnly }), tree, one},
		{"no mode", "unknown sandbox mode", ctx, with(func(b *sandbox.Sandbox) { b.Mode = "" }), tree, nil},
		{"unknown mode", "unknown sandbox mode", ctx, with(func(b *sandbox.Sandbox) { b.Mode = "none" }), tree, one},
		{"cancelled", "canceled", cancelled, box, tree, one},
		{"twice", "asked for twice", ctx, box, tree, []policy.Check{one[0], check(false, "true")}},
		{"a tree that cannot be copied", "copying the tree", ctx, box, treeFiles{".git/config": "1"}.tree(), one},
	} {
		t.Run(c.name, func(t *testing.T) {
			scratch := t.TempDir()
			out, err := workshop(c.box, scratch).Run(c.ctx, c.tree, c.commands)
			if err == nil || out != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, error %v", out, err)
			}
			if left, _ := os.ReadDir(scratch); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if _, err := workshop(box, filepath.Join(t.TempDir(), "missing")).Run(ctx, tree, one); err == nil {
		t.Error("no scratch directory, and no error")
	}
}

// TestNotRun: a missing sandbox is an error; a command that it refuses is an
// Execution, which says why and not where.
func TestNotRun(t *testing.T) {
	c := check(true, "a")
	for _, err := range []error{&sandbox.UnavailableError{Missing: []string{"user namespaces"}}, sandbox.ErrReadOnly} {
		if e, got := notRun(context.Background(), c, "/scratch/x", err); !errors.Is(got, err) || e.Argv != nil {
			t.Errorf("%v: %+v, %v", err, e, got)
		}
	}
	e, err := notRun(context.Background(), c, "/scratch/x", errors.New("starting in /scratch/x:\nno\x1b such thing"))
	if err != nil || e.Error != "starting in the copy: no  such thing" || e.OK() || readBack(e) != nil || !e.Required || e.ExitCode != -1 {
		t.Errorf("%+v, %v", e, err)
	}
	bad := check(true, "true")
	bad.Env = []string{"A=B"}
	if e := run(t, treeFiles{}.tree(), bad)[0]; e.Error == "" || e.ExitCode != -1 || e.OK() {
		t.Errorf("%+v", e)
	}
}

// workshop is one where nothing is a secret.
func workshop(box sandbox.Sandbox, scratch string) Workshop {
	return Workshop{box, scratch, func(s string) string { return s }}
}

// TestT47CutOutput: a secret is taken out before an output is cut, wherever it
// stands.
func TestT47CutOutput(t *testing.T) {
	w := Workshop{Scrub: func(s string) string { return strings.ReplaceAll(s, "SECRET", "-") }}
	for at := range 200 {
		text := strings.Repeat("x", checks.MaxOutput/2-150+at) + "SECRET" + strings.Repeat("y", 2*checks.MaxOutput)
		if got := w.shown([]byte(text), int64(len(text))); strings.ContainsAny(got, "SECRT") {
			t.Fatalf("at %d: %q", at, got)
		}
	}
}
