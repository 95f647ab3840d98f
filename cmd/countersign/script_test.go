package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestMain makes this test binary be the program where it is called as that is, for tests with processes.
func TestMain(m *testing.M) {
	sandbox.Child()
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if name != "countersign" && name != "gh-countersign" {
		os.Exit(runTests(m))
	}
	collectLater() // as main does
	dir, _ := os.Getwd()
	app := console.Process{
		Args: os.Args[1:], Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Now: scriptClock(os.Getenv), Entropy: scriptEntropy(os.Getenv), SetGCPercent: debug.SetGCPercent,
	}
	if name == "gh-countersign" {
		app.GH = &console.Keeper{Path: os.Getenv("PATH")}
	}
	os.Exit(Main(app))
}

// runTests runs the tests of this package, where PATH has the program by both of its names.
func runTests(m *testing.M) int {
	defer storetest.FilesInMemory(os.Getenv, os.Setenv)()
	debug.SetGCPercent(400) // a quarter of what this process did was collecting garbage
	waitTogether()
	bin, err := os.MkdirTemp("", "countersign-bin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(bin)
	self, err := os.Executable()
	program, readErr := os.ReadFile(self)
	first, second := filepath.Join(bin, "countersign"), filepath.Join(bin, "gh-countersign")
	if runtime.GOOS == "windows" {
		first, second = first+".exe", second+".exe"
	}
	err = errors.Join(err, readErr, os.Chmod(bin, 0o755), teststand.WriteFile(first, program))
	if err == nil && os.Link(first, second) != nil { // a file system that has no links
		err = teststand.WriteFile(second, program)
	}
	err = errors.Join(err, os.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH")))
	if err != nil {
		panic(err)
	}
	return m.Run()
}

// waitTogether lets more tests run side by side than there are processors: most
// of the time they wait for the disk and for other processes. -parallel says
// otherwise.
func waitTogether() {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	}
}

// scriptClock is the real clock, or one that TEST_NOW sets and that stands still.
func scriptClock(getenv func(string) string) func() time.Time {
	fixed, err := time.Parse(time.RFC3339, getenv("TEST_NOW"))
	if err != nil {
		return time.Now
	}
	return func() time.Time { return fixed }
}

// scriptEntropy is pinned by TEST_SEED.
func scriptEntropy(getenv func(string) string) io.Reader {
	if seed := getenv("TEST_SEED"); seed != "" {
		return mathrand.NewChaCha8(sha256.Sum256([]byte(seed)))
	}
	return rand.Reader
}

func TestScript(t *testing.T) { testscript.Run(t, scripts(t, "testdata/script")) }

func TestLongScript(t *testing.T) {
	long(t)
	testscript.Run(t, scripts(t, "testdata/long"))
}

// scripts are those of a directory, with the commands that all have.
func scripts(t *testing.T, dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("USER", "tester")
			readme, err := filepath.Abs("../../README.md")
			if err != nil {
				return err
			}
			e.Setenv("README", readme)
			e.Setenv("TERM", "xterm")
			addHub(e)
			return beSomebody(e.WorkDir + "/home")
		},
		Condition: func(name string) (bool, error) {
			if name != "sandbox" {
				return false, fmt.Errorf("no condition is called %q", name)
			}
			return hasSandbox(t.TempDir()), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"countersign": runHere, "adds": patchThatAdds, "changes": patchThatChanges, "derive": deriveIDs, "envfile": envFile, "hub": hubCommand, "plant": plant, "agekey": ageKey, "leaks": leaks, "repo": repoCommand, "exitcode": exitCode, "txid": txID, "commit": commitID, "tutorial": tutorial, "screenshot": screenshot, "ledgerok": ledgerOK, "typed": typedHint, "visit": visit,
		},
	}
}

// beSomebody makes a home whose owner Git knows.
func beSomebody(home string) error {
	return errors.Join(os.MkdirAll(home, 0o777), os.WriteFile(home+"/.gitconfig", []byte("[user]\n\tname = tester\n\temail = tester\n[maintenance]\n\tauto = false\n"), 0o666))
}

// repoCommand makes a repository in a directory from the files that are there:
// repo DIR.
func repoCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: repo DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	git := func(words string) { ts.Check(ts.Exec("git", append([]string{"-C", dir}, strings.Fields(words)...)...)) }
	git("init -q -b main")
	config, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	ts.Check(err)
	_, err = config.WriteString("[user]\n\tname = Ada\n\temail = ada@localhost\n[commit]\n\tgpgsign = false\n")
	ts.Check(errors.Join(err, config.Close()))
	git("add -A")
	git("commit -q --allow-empty -m base")
}

// hasSandbox reports whether commands can be run here at all.
func hasSandbox(dir string) bool {
	done, err := sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, Scratch: dir}.Run(context.Background(), dir, sandbox.Command{Argv: []string{"true"}})
	return err == nil && done.ExitCode == 0
}

// deriveIDs gives a Proposal, and its actions, the ids that they must have:
// derive FILE.
func deriveIDs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: derive FILE")
	}
	doc, err := canon.Parse([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	p := doc.(map[string]any)
	for _, a := range p["actions"].([]any) {
		action := a.(map[string]any)
		content := map[string]any{"type": action["type"], "target": action["target"]}
		if c, ok := action["content"]; ok {
			content["content"] = c
		}
		action["id"], err = document.DeriveID("act", content)
		ts.Check(err)
	}
	p["id"], err = document.DeriveID("prop", p)
	ts.Check(err)
	line, err := canon.Line(p)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), line, 0o666))
}

// sample is the made-up secret of one kind.
func sample(ts *testscript.TestScript, kind string) teststand.Sample {
	for _, s := range teststand.Samples() {
		if s.Kind == kind {
			return s
		}
	}
	ts.Fatalf("no secret of the kind %q", kind)
	return teststand.Sample{}
}

// plant puts a made-up secret where @SECRET@ stands: plant KIND FILE...
func plant(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: plant KIND FILE...")
	}
	text := sample(ts, args[0]).Text()
	ts.Setenv("PLANTED", text)
	for _, file := range args[1:] {
		planted := strings.ReplaceAll(ts.ReadFile(file), "@SECRET@", text)
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(planted), 0o666))
	}
}

// patchThatAdds writes a patch that adds a file of one line: adds PATCH FILE LINE.
func patchThatAdds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: adds PATCH FILE LINE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(addition(args[1], args[2]+"\n")), 0o666))
}

// patchThatChanges writes a patch that changes a file of one line: changes PATCH FILE LINE LINE.
func patchThatChanges(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: changes PATCH FILE LINE LINE")
	}
	patch := fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-%s\n+%s\n", args[1], args[2], args[3])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(patch), 0o666))
}

// envFile sets a variable to a file's content: envfile VAR FILE.
func envFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: envfile VAR FILE")
	}
	ts.Setenv(args[0], ts.ReadFile(args[1]))
}

// ageKey makes a key for sealed patches, and puts its recipient where
// @RECIPIENT@ stands: agekey VAR FILE.
func ageKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: agekey VAR FILE")
	}
	key, err := age.GenerateX25519Identity()
	ts.Check(err)
	ts.Setenv(args[0], key.String())
	text := strings.ReplaceAll(ts.ReadFile(args[1]), "@RECIPIENT@", key.Recipient().String())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o666))
}

// leaks looks for a secret, in any common encoding, in what the last command
// printed and in every object that the ledger's ref reaches: ! leaks KIND.
func leaks(ts *testscript.TestScript, neg bool, args []string) {
	if !neg || len(args) != 1 {
		ts.Fatalf("usage: ! leaks KIND")
	}
	texts := []string{ts.ReadFile("stdout"), ts.ReadFile("stderr")}
	objects := exec.Command("sh", "-c", "git rev-list --objects refs/agent/ledger | cut -d' ' -f1 | git cat-file --batch")
	objects.Dir = ts.MkAbs(".")
	ledger, err := objects.Output()
	ts.Check(err)
	for _, text := range append(texts, string(ledger)) {
		for _, form := range teststand.Encodings(sample(ts, args[0]).Value) {
			if strings.Contains(text, string(form)) {
				ts.Fatalf("the %s is there as %q", args[0], form)
			}
		}
	}
}

// inScript runs the program in this process, as a script would in another.
func inScript(ts *testscript.TestScript, args ...string) (code int, stdout, stderr string) {
	return runIn(ts.MkAbs("."), ts.Getenv, args...)
}

// runIn runs the program in this process, in a directory and an environment, with nothing on stdin.
func runIn(dir string, getenv func(string) string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	app := console.Process{
		Args: args, Dir: dir, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: getenv, Now: scriptClock(getenv), Entropy: scriptEntropy(getenv),
	}
	code = Main(app)
	return code, out.String(), errs.String()
}

// runHere runs the program in this process: countersign ARGS. Where signals, terminals or programs that it runs
// are the subject, and those see the script's environment, scripts say exec countersign.
func runHere(ts *testscript.TestScript, neg bool, args []string) {
	if code := shown(ts, args...); neg != (code != 0) {
		ts.Fatalf("exit code %d", code)
	}
}

// shown runs the program in this process, and lets a script match what it printed.
func shown(ts *testscript.TestScript, args ...string) int {
	code, stdout, stderr := inScript(ts, args...)
	fmt.Fprint(ts.Stdout(), stdout)
	fmt.Fprint(ts.Stderr(), stderr)
	return code
}

// exitCode runs a command, or the program in this process, and compares its exit code: exitcode N CMD ARGS.
// stdout and stderr can be matched afterwards.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N CMD ARGS...")
	}
	if args[1] == "countersign" {
		if code := shown(ts, args[2:]...); strconv.Itoa(code) != args[0] {
			ts.Fatalf("exit code %d, want %s", code, args[0])
		}
		return
	}
	command := args[1:]
	if command[0] == "exec" { // the program, in a process of its own
		command = command[1:]
	}
	err := ts.Exec(command[0], command[1:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// txID sets a variable to the newest transaction's id: txid VAR DIR.
func txID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: txid VAR DIR")
	}
	ts.Check(ts.Exec("git", "-C", ts.MkAbs(args[1]), "ls-tree", "-r", "--name-only", "refs/agent/ledger", "transactions"))
	newest := ""
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if parts := strings.Split(line, "/"); len(parts) > 6 {
			newest = max(newest, parts[5])
		}
	}
	ts.Setenv(args[0], newest)
	ts.Setenv(args[0]+"7", lookup.ShortID(newest)) // as people are told of it
}

// commitID sets a variable to the commit that a ref names: commit VAR DIR REF.
func commitID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: commit VAR DIR REF")
	}
	ts.Check(ts.Exec("git", "-C", ts.MkAbs(args[1]), "rev-parse", args[2]))
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// ledgerOK checks what must hold after every script: the real git finds nothing
// wrong, the history is linear with one root, and every transaction validates.
func ledgerOK(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ledgerok DIR")
	}
	dir := ts.MkAbs(args[0])
	git := func(words ...string) string {
		ts.Check(ts.Exec("git", append([]string{"-C", dir}, words...)...))
		return ts.ReadFile("stdout") + ts.ReadFile("stderr")
	}
	if out := git("fsck", "--strict", "--no-dangling", "--full"); strings.TrimSpace(out) != "" {
		ts.Fatalf("git fsck: %s", out)
	}
	if merges := git("rev-list", "--min-parents=2", "refs/agent/ledger"); merges != "" {
		ts.Fatalf("the ledger has merges: %s", merges)
	}
	if roots := git("rev-list", "--max-parents=0", "refs/agent/ledger"); strings.Count(roots, "\n") != 1 {
		ts.Fatalf("the ledger has not one root: %s", roots)
	}
	for line := range strings.Lines(git("ls-tree", "-r", "--name-only", "refs/agent/ledger", "transactions")) {
		if parts := strings.Split(strings.TrimSpace(line), "/"); len(parts) == 7 && parts[6] == "events.jsonl" {
			if code, out, errs := inScript(ts, "-C", dir, "validate", parts[5]); code != 0 {
				ts.Fatalf("validate: exit code %d\n%s%s", code, out, errs)
			}
		}
	}
}

// The demo is read at one go.
func TestDemo(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", home)
	var out, errs bytes.Buffer
	app := console.Process{Args: []string{"demo"}, Stdout: &out, Stderr: &errs, Getenv: os.Getenv, Now: time.Now, Entropy: rand.Reader}
	if code, lines := Main(app), strings.Count(out.String(), "\n"); code != 0 || lines > 90 {
		t.Errorf("exit %d, %d lines, stderr %q:\n%s", code, lines, &errs, &out)
	}
}

// The help of every command has an example, and the command line of the
// program says nothing on stderr when all is well.
func TestHelp(t *testing.T) {
	root := rootCommand(console.New(console.Process{}))
	for _, c := range root.Commands() {
		if !c.Hidden && c.Example == "" {
			t.Errorf("%s has no example", c.Name())
		}
		if !c.Hidden && c.GroupID == "" {
			t.Errorf("%s is in no group", c.Name())
		}
		if c.Short == "" {
			t.Errorf("%s has no short description", c.Name())
		}
	}
	var out, errs bytes.Buffer
	app := console.Process{Args: []string{"--help"}, Stdout: &out, Stderr: &errs, Getenv: os.Getenv}
	if code := Main(app); code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "demo") {
		t.Errorf("--help: exit %d, stderr %q", code, &errs)
	}
	if lines := strings.Count(out.String(), "\n"); lines > 45 {
		t.Errorf("the root's help has %d lines:\n%s", lines, &out)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 81 {
			t.Errorf("wider than a terminal: %s", line)
		}
	}
	for _, g := range console.Groups {
		for _, name := range strings.Fields(g.Common + " " + g.Rare) {
			if c, _, err := root.Find([]string{name}); name != "completion" && (err != nil || c.Name() != name || c.GroupID != g.Title) {
				t.Errorf("%s has %s, which is no command of it", g.Title, name)
			}
		}
	}
}

// TestPlaceholders: what stands for a flag's value does not read as one.
func TestPlaceholders(t *testing.T) {
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		look := func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); strings.Contains(f.Usage, "`") && name != strings.ToUpper(name) {
				t.Errorf("%s --%s %s", c.CommandPath(), f.Name, name)
			}
		}
		c.LocalFlags().VisitAll(look)
		for _, below := range c.Commands() {
			all(below)
		}
	}
	all(rootCommand(console.New(console.Process{})))
}

// TestArguments: whichever command has too few or too many arguments, that is a
// usage error with exit code 2.
func TestArguments(t *testing.T) {
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		refused := false
		for n := range 6 {
			err := c.ValidateArgs(slices.Repeat([]string{"x"}, n))
			if err == nil {
				continue
			}
			refused = true
			if code := console.CodeOf(err); code != console.ExitRefused {
				t.Errorf("%s with %d arguments: exit code %d, %v", c.CommandPath(), n, code, err)
			}
		}
		if !refused {
			t.Errorf("%s takes any number of arguments", c.CommandPath())
		}
		for _, below := range c.Commands() {
			all(below)
		}
	}
	all(rootCommand(console.New(console.Process{})))
}
