package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"golang.org/x/sys/unix"
)

// A pseudoTerminal is the two ends of a pty: the program has inner, the person
// types and reads at outer.
type pseudoTerminal struct {
	t            *testing.T
	outer, inner *os.File
	mu           sync.Mutex
	shown        bytes.Buffer
	at           []time.Time // of each part that was shown
	more         chan struct{}
	cannotEmpty  bool
}

func newTerminal(t *testing.T) *pseudoTerminal {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	check(t, unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	check(t, err)
	inner, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	p := &pseudoTerminal{t: t, outer: outer, inner: inner, more: make(chan struct{}, 1)}
	t.Cleanup(func() { _ = inner.Close(); _ = outer.Close() })
	go func() {
		part := make([]byte, 4096)
		for {
			n, err := outer.Read(part)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.shown.Write(part[:n])
			p.at = append(p.at, time.Now())
			p.mu.Unlock()
			select {
			case p.more <- struct{}{}:
			default:
			}
		}
	}()
	return p
}

func (p *pseudoTerminal) types(text string) {
	p.t.Helper()
	_, err := p.outer.WriteString(text)
	check(p.t, err)
}

func (p *pseudoTerminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

// times are when something was shown.
func (p *pseudoTerminal) times() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.at)
}

// awaits waits until a text was shown.
func (p *pseudoTerminal) awaits(text string) {
	p.t.Helper()
	for !strings.Contains(p.text(), text) {
		select {
		case <-p.more:
		case <-time.After(time.Minute):
			p.t.Fatalf("%q was not shown in\n%s", text, p.text())
		}
	}
}

// starts runs the program at this terminal, and returns its exit code and what
// it printed on stdout, which is a file.
func (p *pseudoTerminal) starts(dir string, env map[string]string, args ...string) func() (int, string) {
	var out bytes.Buffer
	app := console.Process{
		Args: append([]string{"-C", dir}, args...), Stdin: p.inner, Stdout: &out, Stderr: p.inner, Now: time.Now, Entropy: rand.Reader,
		Getenv: func(name string) string { return env[name] },
	}
	if p.cannotEmpty {
		app.EmptyInput = func(*os.File) error { return unix.EIO }
	}
	done := make(chan int, 1)
	go func() { done <- Main(app) }()
	return func() (int, string) {
		p.t.Helper()
		select {
		case code := <-done:
			return code, out.String()
		case <-time.After(time.Minute):
			p.t.Fatalf("it does not end:\n%s", p.text())
			return 0, ""
		}
	}
}

const question = "Approve these bytes ("

// asked is a repository with a patch to it that waits to be asked about.
func asked(t *testing.T) (s playground, file string) {
	t.Helper()
	s = newSandbox(t, map[string]string{"greet.txt": "hello\n"})
	s.git("init", "-q", "-b", "main")
	s.git("config", "user.email", "tester")
	s.commit()
	file = filepath.Join(s.dir, "fix.patch")
	check(t, os.WriteFile(file, []byte("diff --git a/greet.txt b/greet.txt\n--- a/greet.txt\n+++ b/greet.txt\n@@ -1 +1 @@\n-hello\n+hello, world\n"), 0o644))
	return s, file
}

// In a terminal, run shows the coloured diff and asks; NO_COLOR is respected.
func TestAsk(t *testing.T) {
	t.Parallel()
	s, file := asked(t)
	for _, c := range []struct {
		answer  string
		env     map[string]string
		exit    int
		greet   string
		verdict string
	}{
		{"No\n", map[string]string{"NO_COLOR": "1"}, console.ExitPending, "hello\n", "waits for approval"},
		{"\n", nil, console.ExitPending, "hello\n", "waits for approval"},
		{"\x04", nil, console.ExitPending, "hello\n", "waits for approval"}, // the end of the input
		{"y\x04\x04", nil, console.ExitPending, "hello\n", "waits for approval"},
		{"Yes\n", nil, 0, "hello, world\n", "Applied"},
	} {
		p := newTerminal(t)
		ended := p.starts(s.repo, c.env, "run", "--patch", file)
		p.awaits(question)
		p.types(c.answer)
		code, out := ended()
		if code != c.exit || s.read("greet.txt") != c.greet || !strings.Contains(out, c.verdict) {
			t.Errorf("answered %q: exit %d, want %d, greet.txt is %q\n%s", c.answer, code, c.exit, s.read("greet.txt"), out)
		}
		if coloured := strings.Contains(p.text(), "\x1b[32m+hello, world"); coloured != (c.env == nil) {
			t.Errorf("coloured: %v\n%s", coloured, p.text())
		}
	}
	s.commit()
	check(t, os.WriteFile(file, []byte(addition("new.txt", "x\n")), 0o644))
	p := newTerminal(t)
	ended := p.starts(s.repo, nil, "run", "--patch", file)
	p.awaits(question)
	for _, word := range []string{"approve\n", "cleay\n", "l\n"} { // no answers: it is asked again
		asked := strings.Count(p.text(), question)
		p.types(word)
		for strings.Count(p.text(), question) == asked {
			<-p.more
		}
	}
	if n := strings.Count(p.text(), "+x"); n != 2 {
		t.Errorf("shown %d times\n%s", n, p.text())
	}
	p.types("d\n")
	p.answers("Why? (empty: do not deny) > ", "\n")
	if code, out := ended(); code != console.ExitPending {
		t.Errorf("a denial without a reason: exit %d\n%s", code, out)
	}
	p = newTerminal(t)
	ended = p.starts(s.repo, nil, "run")
	p.answers(question, "d\n", "Why? (empty: do not deny) > ", "no\n")
	if code, out := ended(); code != console.ExitDenied || !strings.Contains(out, "Denied") {
		t.Errorf("a denial: exit %d\n%s", code, out)
	}
}

// T70 What was typed before the question is no answer to it: not a whole line,
// not several, and not the beginning of one.
func TestT70TypedBefore(t *testing.T) {
	long(t)
	for _, before := range []string{"y\n", "y\ny\nyes\n", "y", "d\n", "n\nd"} {
		s, file := asked(t)
		p := newTerminal(t)
		p.types(before)
		p.awaits(strings.ReplaceAll(before, "\n", "\r\n")) // its echo: it is in the terminal's input
		ended := p.starts(s.repo, nil, "run", "--patch", file)
		p.awaits(question)
		p.types("\n")
		if code, out := ended(); code != console.ExitPending || s.read("greet.txt") != "hello\n" {
			t.Errorf("%q typed before: exit %d, greet.txt is %q\n%s", before, code, s.read("greet.txt"), out)
		}
		p = newTerminal(t)
		ended = p.starts(s.repo, nil, "run")
		p.awaits(question)
		p.types("y\n")
		if code, out := ended(); code != 0 || s.read("greet.txt") != "hello, world\n" {
			t.Errorf("answered after the question: exit %d\n%s", code, out)
		}
	}
}

// T70 Where the input cannot be emptied, or is no terminal, nobody is asked and
// nothing is approved: it is as if nobody were there.
func TestT70NotEmptied(t *testing.T) {
	s, file := asked(t)
	p := newTerminal(t)
	p.cannotEmpty = true
	p.types("y\n")
	code, out := p.starts(s.repo, nil, "run", "--patch", file)()
	p.awaits("not asked")
	if code != console.ExitPending || !strings.Contains(out, " approve ") || s.read("greet.txt") != "hello\n" || !strings.Contains(p.text(), "not asked") || strings.Contains(p.text(), question) {
		t.Errorf("exit %d\n%s", code, p.text())
	}

	cmd := s.command("run")
	cmd.Stdin = strings.NewReader("y\ny\n")
	if code, _, errs := runCode(cmd); code != console.ExitPending || strings.Contains(errs, question) || s.read("greet.txt") != "hello\n" {
		t.Errorf("stdin is a pipe: exit %d\n%s", code, errs)
	}
}

// T71 A diff, and JSON, that a terminal would obey are shown and not obeyed.
func TestT71Terminal(t *testing.T) {
	s, file := asked(t)
	check(t, os.WriteFile(file, []byte(addition("new.txt", "\x9b2J\u009b8mhidden\n")), 0o644))
	p := newTerminal(t)
	ended := p.starts(s.repo, nil, "run", "--patch", file)
	p.awaits(question)
	p.types("\n")
	ended()
	for _, args := range [][]string{{"diff"}, {"diff", "--json"}, {"log", "--json"}, {"show", "--json"}, {"review", "--patch", file, "--dry-run"}} {
		app := console.Process{
			Args: append([]string{"-C", s.repo}, args...), Stdin: strings.NewReader(""), Stdout: p.inner, Stderr: p.inner, Now: time.Now, Entropy: rand.Reader,
			Getenv: func(string) string { return "" },
		}
		if code := Main(app); code != 0 {
			t.Errorf("%s: exit %d", args, code)
		}
	}
	p.awaits("(dry run: nothing was recorded)")
	for _, raw := range []string{"\x9b2J", "\u009b"} {
		if strings.Contains(p.text(), raw) {
			t.Errorf("%q was sent to the terminal", raw)
		}
	}
	if n := strings.Count(p.text(), "stand for what does not show in line 7 of this diff"); n != 3 {
		t.Errorf("said %d times that there are escapes\n%s", n, p.text())
	}
}

// A command that prints nothing for a while says on a terminal that it is at work, and leaves no
// trace of that; nowhere else, and not where it was told not to.
func TestWorking(t *testing.T) {
	t.Parallel()
	s, file := asked(t)
	s.run(0, "review", "--patch", file)
	for _, c := range []struct {
		args []string
		env  map[string]string
	}{
		{[]string{"-q"}, nil}, {[]string{"--json"}, nil}, {nil, map[string]string{"TERM": "dumb"}},
	} {
		p := newTerminal(t)
		code, out := p.starts(s.repo, c.env, append(c.args, "wait", "--timeout", "300ms", "--every", "50ms")...)()
		_, _ = p.inner.WriteString("end\n")
		p.awaits("end")
		if text := p.text(); code != console.ExitPending || strings.Contains(out, "working") || strings.Contains(text, "working") {
			t.Errorf("%q %v: exit %d, %q, %q", c.args, c.env, code, out, text)
		}
	}
	p := newTerminal(t)
	ended := p.starts(s.repo, nil, "wait", "--every", "50ms")
	p.awaits("\rwait: working (")
	s.run(0, "close", s.newest())
	code, out := ended()
	p.awaits("countersign: error")
	text := p.text()
	if code != console.ExitRefused || strings.Contains(out, "working") {
		t.Errorf("exit %d, %q, %q", code, out, text)
	}
	if last := text[:strings.Index(text, "countersign: error")]; !strings.HasSuffix(last, " \r") && !strings.HasSuffix(last, " \r\x1b[31m") {
		t.Errorf("it leaves a trace: %q", text)
	}
}
