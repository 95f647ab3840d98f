package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// playground is a repository and a copy of the program that any user may run.
type playground struct {
	t        *testing.T
	dir, bin string
	repo     string
	own      []string // variables beside those of this process
}

func newSandbox(t *testing.T, files map[string]string) playground {
	t.Helper()
	return sandboxIn(t, "", files)
}

// sandboxIn makes a playground in a directory for temporary files, "" for the usual one.
func sandboxIn(t *testing.T, parent string, files map[string]string) playground {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "countersign-test-")
	check(t, err)
	dir, err = filepath.EvalSymlinks(dir) // as the directory for temporary files is one on a Mac
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := playground{t: t, dir: dir, bin: filepath.Join(dir, "countersign"), repo: filepath.Join(dir, "repo")}
	program, err := exec.LookPath("countersign") // this binary, as TestMain names it
	check(t, err)
	if os.Link(program, s.bin) != nil {
		data, err := os.ReadFile(program)
		check(t, err)
		check(t, teststand.WriteFile(s.bin, data))
	}
	check(t, errors.Join(os.Chmod(dir, 0o755), os.Chmod(s.bin, 0o755)))
	check(t, os.MkdirAll(s.repo, 0o755))
	for name, content := range files {
		s.write(name, content)
	}
	return s
}

var check = teststand.Fatal

func (s playground) write(name, content string) {
	s.t.Helper()
	full := filepath.Join(s.repo, filepath.FromSlash(name))
	check(s.t, os.MkdirAll(filepath.Dir(full), 0o755))
	check(s.t, os.WriteFile(full, []byte(content), 0o644))
}

func (s playground) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.repo, filepath.FromSlash(name)))
	check(s.t, err)
	return string(data)
}

func (s playground) env() []string {
	usual := append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "HOME="+s.dir, "GIT_AUTHOR_EMAIL=tester", "CI=")
	return append(usual, s.own...)
}

func (s playground) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir, cmd.Env = s.repo, s.env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, &errs)
	}
	return out.String()
}

func (s playground) commit() {
	s.t.Helper()
	s.git("add", "-A")
	s.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", "x")
}

// newest is the id of the transaction that was made last.
func (s playground) newest() string {
	s.t.Helper()
	newest := ""
	for line := range strings.Lines(s.git("ls-tree", "-r", "--name-only", "refs/agent/ledger", "transactions")) {
		if parts := strings.Split(line, "/"); len(parts) > 6 {
			newest = max(newest, parts[5])
		}
	}
	return newest
}

// command is a run of the program; its name in argv makes the test binary act
// as the program (see TestMain).
func (s playground) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.bin, args...)
	cmd.Args[0] = "countersign"
	cmd.Dir, cmd.Env = s.repo, s.env()
	return cmd
}

// run runs the program in this process, and command in one of its own.
func (s playground) run(want int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	if s.bin != filepath.Join(s.dir, "countersign") { // it is another program
		return s.runCmd(want, s.command(args...))
	}
	code, stdout, stderr := runIn(s.repo, s.getenv, args...)
	if code != want {
		s.t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, stdout, stderr)
	}
	return stdout, stderr
}

// getenv is a variable of env, of which the last counts.
func (s playground) getenv(name string) string {
	for _, v := range slices.Backward(s.env()) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

func (s playground) runCmd(want int, cmd *exec.Cmd) (stdout, stderr string) {
	s.t.Helper()
	code, stdout, stderr := runCode(cmd)
	if code != want {
		s.t.Fatalf("%v: exit code %d, want %d\n%s%s", cmd.Args, code, want, stdout, stderr)
	}
	return stdout, stderr
}

func runCode(cmd *exec.Cmd) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		code = -1
		errs.WriteString(err.Error())
	}
	return code, out.String(), errs.String()
}

// validLedger checks the whole ledger with the real git and with validate, and
// returns how many transactions there are.
func (s playground) validLedger() int {
	s.t.Helper()
	if out := s.git("fsck", "--strict", "--no-dangling"); out != "" {
		s.t.Errorf("git fsck: %s", out)
	}
	if out := s.git("rev-list", "--min-parents=2", "refs/agent/ledger"); out != "" {
		s.t.Errorf("the ledger has merges: %s", out)
	}
	n := 0
	for line := range strings.Lines(s.git("ls-tree", "-r", "--name-only", "refs/agent/ledger", "transactions")) {
		parts := strings.Split(strings.TrimSpace(line), "/")
		if len(parts) == 7 && parts[6] == "events.jsonl" {
			n++
			s.run(0, "validate", parts[5])
		}
	}
	return n
}

// addition is a Git diff that adds one file.
func addition(name, content string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(content, "\n"), "\n")
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%[2]d @@\n+%[3]s\n",
		name, len(lines), strings.Join(lines, "+"))
}

// T52 Many processes at once: nothing is lost, nothing is doubled, and each
// transaction ends as it should.
func TestT52ProcessesAtOnce(t *testing.T) {
	long(t)
	t.Parallel()
	s := newSandbox(t, map[string]string{"a.txt": "a\n"})
	s.git("init", "-q", "-b", "main")
	s.commit()
	const writers = 4
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			name := fmt.Sprintf("new%d.txt", i)
			file := filepath.Join(s.dir, name+".patch")
			if err := os.WriteFile(file, []byte(addition(name, "x\n")), 0o644); err != nil {
				t.Error(err)
				return
			}
			for range 2 { // the second finds the first one's transaction
				if code, _, errs := runCode(s.command("review", "--patch", file)); code != 0 {
					t.Errorf("review %d: exit %d\n%s", i, code, errs)
				}
			}
		})
	}
	wg.Wait()
	if n := s.validLedger(); n != writers {
		t.Errorf("%d transactions, want %d", n, writers)
	}
	out, _ := s.run(0, "list")
	for line := range strings.Lines(out) {
		id := strings.Fields(line)[0]
		for range 2 { // two approvers and two appliers for each
			wg.Go(func() { runCode(s.command("approve", id)) })
		}
		wg.Go(func() { runCode(s.command("run", id)) })
	}
	wg.Wait()
	for line := range strings.Lines(out) {
		s.run(0, "run", strings.Fields(line)[0])
	}
	for i := range writers {
		if got := s.read(fmt.Sprintf("new%d.txt", i)); got != "x\n" {
			t.Errorf("new%d.txt is %q", i, got)
		}
	}
	s.validLedger()
	if n := strings.Count(s.git("log", "--format=%s", "refs/agent/ledger"), "apply: SUCCESS"); n != writers {
		t.Errorf("%d applies are recorded, want %d", n, writers)
	}
}
