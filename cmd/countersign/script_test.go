package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test binary serve as the countersign command in scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"countersign": func() {
			app := App{
				Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
				Getenv: os.Getenv, Now: testClock(), Entropy: testEntropy(),
			}
			os.Exit(app.Main())
		},
	})
}

// testClock is the real clock, or one that TEST_NOW sets and that stands still.
func testClock() func() time.Time {
	fixed, err := time.Parse(time.RFC3339, os.Getenv("TEST_NOW"))
	if err != nil {
		return time.Now
	}
	return func() time.Time { return fixed }
}

// testEntropy is pinned by TEST_SEED, else different in each process.
func testEntropy() *rand.ChaCha8 {
	seed := os.Getenv("TEST_SEED")
	if seed == "" {
		seed = fmt.Sprint(os.Getpid(), time.Now().UnixNano())
	}
	return rand.NewChaCha8(sha256.Sum256([]byte(seed)))
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("USER", "tester")
			e.Setenv("TERM", "xterm")
			return os.MkdirAll(e.WorkDir+"/home", 0o777)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"repo": repoCommand, "exitcode": exitCode, "txid": txID, "commit": commitID, "ledgerok": ledgerOK,
		},
	})
}

// repoCommand makes a repository in a directory from the files that are there:
// repo DIR.
func repoCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: repo DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	for _, words := range []string{
		"init -q -b main", "config user.name Ada", "config user.email ada@localhost", "config commit.gpgsign false",
		"add -A", "commit -q --allow-empty -m base",
	} {
		ts.Check(ts.Exec("git", append([]string{"-C", dir}, strings.Fields(words)...)...))
	}
}

// exitCode runs a command and compares its exit code: exitcode N CMD ARGS.
// stdout and stderr can be matched afterwards.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N CMD ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
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
		newest = max(newest, strings.Split(line, "/")[5])
	}
	ts.Setenv(args[0], newest)
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
		if parts := strings.Split(strings.TrimSpace(line), "/"); parts[6] == "events.jsonl" {
			ts.Check(ts.Exec("countersign", "-C", dir, "validate", parts[5]))
		}
	}
}

// The help of every command has an example, and the command line of the
// program says nothing on stderr when all is well.
func TestHelp(t *testing.T) {
	app := App{}
	for _, c := range app.rootCommand().Commands() {
		if !c.Hidden && c.Example == "" {
			t.Errorf("%s has no example", c.Name())
		}
		if c.Short == "" {
			t.Errorf("%s has no short description", c.Name())
		}
	}
	var out, errs bytes.Buffer
	app = App{Args: []string{"--help"}, Stdout: &out, Stderr: &errs, Getenv: os.Getenv}
	if code := app.Main(); code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "demo") {
		t.Errorf("--help: exit %d, stderr %q", code, &errs)
	}
}
