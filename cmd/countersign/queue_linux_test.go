package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// awaitsQuestion waits until more than n changes were asked about.
func (p *pseudoTerminal) awaitsQuestion(n int) {
	for strings.Count(p.text(), question) <= n {
		<-p.more
	}
}

// A queue is gone through with a key for each change, each of which is shown, the riskiest first. COUNTERSIGN_LONG=1 goes
// through thirty.
func TestApproveQueue(t *testing.T) {
	t.Parallel()
	n := 4
	if everything() {
		n = 30
	}
	s, _ := asked(t)
	for i := range n - 1 {
		s.proposes(fmt.Sprintf("change %d", i), addition(fmt.Sprintf("new%d.txt", i), fmt.Sprintf("bytes of %d\n", i)))
	}
	s.proposes("the riskiest", addition("run.sh", "old mode\n")+addition("Makefile", "all:\n"))
	s.run(0, "status")
	p := newTerminal(t)
	ended := p.starts(s.repo, map[string]string{"NO_COLOR": "1"}, "approve")
	for i := range n {
		p.awaitsQuestion(i)
		p.types("y")
	}
	code, out := ended()
	if got := strings.Count(out, "Approved"); code != 0 || got != n {
		t.Fatalf("exit %d, %d of %d approved\n%s\n%s", code, got, n, out, p.text())
	}
	for i := range n - 1 {
		if line := fmt.Sprintf("+bytes of %d\r\n", i); strings.Count(p.text(), line) != 1 {
			t.Errorf("%q is shown %d times", line, strings.Count(p.text(), line))
		}
	}
	if first := strings.Index(p.text(), "+all:"); first < 0 || first > strings.Index(p.text(), "+bytes of 0") {
		t.Errorf("the riskiest does not come first\n%s", p.text())
	}
}

// T70 In a queue a key that is held down, keys that were pressed before the question, and several at once answer nothing; Enter and other
// keys approve nothing.
func TestT70QueueKeys(t *testing.T) {
	s, _ := asked(t)
	first, second := s.proposes("A", addition("a.txt", "a\n")), s.proposes("B", addition("b.txt", "b\n"))
	p := newTerminal(t)
	ended := p.starts(s.repo, nil, "approve")
	p.awaits("1 of 2")
	p.types("yyy") // before the question
	for i, key := range []string{"x", "yy", "\x1b[A", "\r", "y"} {
		p.awaitsQuestion(i)
		p.types(key)
	}
	code, out := ended()
	if s.decisions(first)+s.decisions(second) != 1 {
		t.Errorf("exit %d, %d decisions\n%s\n%s", code, s.decisions(first)+s.decisions(second), out, p.text())
	}
}

// Ctrl-C ends a queue also before its question, while keys are awaited to be let go.
func TestQueueInterrupted(t *testing.T) {
	if signal.Ignored(os.Interrupt) {
		t.Skip("whoever runs this test has had SIGINT ignored, and so has the program")
	}
	s, _ := asked(t)
	ids := []string{s.proposes("A", addition("a.txt", "a\n")), s.proposes("B", addition("b.txt", "b\n"))}
	p := newTerminal(t)
	cmd := s.command("approve")
	cmd.Env = append(cmd.Env, "TERM=xterm", "COUNTERSIGN_PAGER=cat")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.inner, p.inner, p.inner
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	check(t, cmd.Start())
	for raw := false; !raw; { // from when keys are read one by one
		settings, err := unix.IoctlGetTermios(int(p.inner.Fd()), unix.TCGETS)
		check(t, err)
		raw = settings.Lflag&unix.ISIG == 0
		time.Sleep(time.Millisecond)
	}
	p.types("\x03")
	err := cmd.Wait()
	if err == nil || s.decisions(ids[0])+s.decisions(ids[1]) != 0 || strings.Contains(p.text(), "2 of 2") {
		t.Errorf("%v\n%s", err, p.text())
	}
}
