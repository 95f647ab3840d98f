package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

// newcomer is a repository whose owner begins, with changes of three files that are not committed.
func newcomer(t *testing.T) playground {
	s := newSandbox(t, map[string]string{"greet.txt": "hello\n", "main.go": "package main\n"})
	s.git("init", "-q", "-b", "main")
	s.git("config", "user.name", "Ann Newcomer")
	s.git("config", "user.email", "ann@localhost")
	s.commit()
	s.write("greet.txt", "hello, world\n")
	s.write("main.go", "package main\n\nfunc main() {}\n")
	s.write("new.txt", "new\n")
	return s
}

// shows runs the program with all that it prints at the terminal, and returns that; after each
// question it types the answer.
func (p *pseudoTerminal) shows(cmd *exec.Cmd, exit int, answers ...string) string {
	p.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.inner, p.inner, p.inner
	cmd.Env = append(cmd.Env, "TERM=dumb", "NO_COLOR=1")
	check(p.t, cmd.Start())
	p.answers(answers...)
	_ = cmd.Wait()
	_, _ = p.inner.WriteString("\x00") // after all that was printed
	p.awaits("\x00")
	if code := cmd.ProcessState.ExitCode(); code != exit {
		p.t.Errorf("%v: exit %d, want %d\n%s", cmd.Args, code, exit, p.text())
	}
	return strings.ReplaceAll(strings.TrimSuffix(p.text(), "\x00"), "\r", "")
}

// TestNewcomerReads: at a terminal a change of three files is proposed, approved, applied and committed in two
// commands, of which the second is told, and thirty lines beside the diff.
func TestNewcomerReads(t *testing.T) {
	t.Parallel()
	s := newcomer(t)
	read := newTerminal(t).shows(s.command("run", "--worktree"), 0, question, "y\n")
	before, diff, _ := strings.Cut(read, "\ndiff --git ")
	_, after, asked := strings.Cut(diff, "\nYou decide as ")
	if n := strings.Count(before+after, "\n"); n > 30-4 || !asked { // and those that are cut
		t.Errorf("%d lines are to be read beside the diff:\n%s", n, read)
	}
	_, line, told := strings.Cut(read, "Not committed yet:  ")
	cmd := exec.Command("sh", "-c", strings.TrimSpace(line)+" -q -m 'as approved'")
	cmd.Dir, cmd.Env = s.repo, s.env()
	if out, err := cmd.CombinedOutput(); err != nil || !told || len(out) > 0 {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
	if left := s.git("status", "--short"); left != "" || s.git("log", "-1", "--format=%s") != "as approved\n" {
		t.Errorf("not committed: %s", left)
	}
}

// TestNewcomerScript: without a terminal it is three commands, and the one that commits is told.
func TestNewcomerScript(t *testing.T) {
	t.Parallel()
	s, lines := newcomer(t), 0
	read := func(exit int, args ...string) {
		t.Helper()
		out, errs := s.run(exit, args...)
		lines += strings.Count(out+errs, "\n")
	}
	read(console.ExitPending, "run", "--worktree")
	read(0, "approve", s.newest())
	read(0, "run")
	s.commit()
	if lines > 30 {
		t.Errorf("%d lines are to be read", lines)
	}
}

// TestNewcomerLines: no command but those that list or show prints more than eight lines of a change of three
// files, and the demonstration is no longer than ninety.
func TestNewcomerLines(t *testing.T) {
	long(t)
	t.Parallel()
	s := newcomer(t)
	s.run(console.ExitPending, "run", "--worktree")
	id := s.newest()
	for _, c := range []struct {
		exit int
		args string
	}{
		{0, "review --worktree"}, {console.ExitPending, "run --worktree"}, {console.ExitPending, "gate"}, {console.ExitPending, "apply"}, {console.ExitPending, "wait --timeout 0.01s"},
		{0, "status"}, {0, ""}, {0, "validate"}, {console.ExitRefused, "approve"}, {0, "approve TX"}, {0, "approve TX"}, {0, "gate TX"}, {0, "run TX"}, {0, "run TX"}, {0, "apply TX"},
		{0, "validate TX"}, {0, "gate TX"}, {console.ExitRefused, "close TX"}, {console.ExitRefused, "deny TX -m no"}, {0, "status"}, {0, "wait TX"}, {0, "doctor"},
	} {
		out, errs := s.run(c.exit, strings.Fields(strings.ReplaceAll(c.args, "TX", id))...)
		if n := strings.Count(out+errs, "\n"); n > 8 {
			t.Errorf("%s prints %d lines:\n%s%s", c.args, n, out, errs)
		}
	}
	cmd := s.command("demo")
	cmd.Env = append(cmd.Env, "TMPDIR="+s.dir)
	if out, errs := s.runCmd(0, cmd); strings.Count(out+errs, "\n") > 90 {
		t.Errorf("demo prints %d lines:\n%s%s", strings.Count(out+errs, "\n"), out, errs)
	}
}

// TestNewcomerLater: who puts a decision off, or denies without a reason, has made no error, and nothing is recorded.
func TestNewcomerLater(t *testing.T) {
	long(t)
	t.Parallel()
	s := newcomer(t)
	for _, answers := range [][]string{{question, "\n"}, {question, "n\n"}, {question, "d\n", "Why? (empty: do not deny) > ", "\n"}} {
		text := newTerminal(t).shows(s.command("run", "--worktree"), console.ExitPending, answers...)
		if strings.Contains(text, "error") || s.decisions(s.newest()) != 0 {
			t.Errorf("%q:\n%s", answers, text)
		}
	}
}

// TestNewcomerColumns: in eighty columns lines end between words.
func TestNewcomerColumns(t *testing.T) {
	long(t)
	t.Parallel()
	s := newcomer(t)
	s.write(".github/countersign.yml", "version: 1\nprotected:\n  - paths: [greet.txt]\n    users: [somebody-with-a-long-name, somebody-else-with-a-long-name]\n")
	s.git("add", ".github")
	s.git("commit", "-q", "-m", "Policy")
	file := filepath.Join(s.dir, "fix.patch")
	check(t, os.WriteFile(file, []byte(s.git("diff")), 0o644))
	s.git("stash", "-u", "-q")
	s.run(0, "review", file, "--summary", "a summary that is long enough to have to go on in another line, or to be cut where there is no room")
	id := s.newest()
	s.run(0, "approve", id, "--reason", "it does what it says, and nobody has found anything else that it might do to them")
	for _, args := range [][]string{{"show"}, {"gate"}, {"status"}, {"run"}, {"close"}} {
		p := newTerminal(t)
		check(t, unix.IoctlSetWinsize(int(p.inner.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 200, Col: 80}))
		exit := map[string]int{"gate": console.ExitPending, "run": console.ExitPending}[args[0]]
		wide, errs := "", ""
		if args[0] != "close" {
			wide, errs = s.run(exit, args...)
		}
		known := strings.Fields(wide + errs)
		text := p.shows(s.command(args...), exit)
		for row := range strings.Lines(text) {
			if strings.HasPrefix(row, "countersign: ") {
				continue // a remark, with a command in it that must stay one line
			}
			row = strings.TrimRight(row, "\n")
			words := strings.Fields(row)
			broken := len(words) > 0 && len(known) > 0 && !strings.HasSuffix(row, "…") && !strings.HasSuffix(row, `…"`) && !slices.Contains(known, words[len(words)-1])
			if n := len([]rune(row)); n > 80 || broken {
				t.Errorf("%s: %d columns, or a word is broken: %s\n%s", args, n, row, text)
			}
		}
	}
}
