package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

// In a terminal init asks what the Policy is to say, shows what it changes before it
// writes, and writes nothing without a yes.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, map[string]string{"greet.txt": "hello\n"})
	s.git("init", "-q", "-b", "main")
	const (
		policy = ".github/countersign.yml"
		who    = "Who may approve: read, triage, write, maintain or admin?"
		many   = "How many must approve, 1 to 100?"
		author = "May people approve what they proposed themselves, yes or no?"
		gate   = "Guard pull requests themselves too, yes or no?"
		pulls  = "What to do with such a proposal: no, open or merge?"
		write  = "Write these changes?"
	)
	for _, c := range []struct {
		args    []string
		answers []string
		exit    int
		policy  string   // some of it afterwards
		shown   []string // on the terminal
	}{
		{[]string{"init", "--interactive"}, []string{who, "\x04"}, console.ExitRefused, "", []string{"so nothing was written"}},
		{[]string{"init", "--interactive"}, []string{who, "maintain\n", many, "2\n", author, "YES\n", gate, "\n", pulls, "open\n"}, 0, "required: 2 ", []string{who + " [write]", many + " [1]", author + " [no]"}},
		{[]string{"init", "--interactive"}, []string{who, "\n", many, "1\n", author, "no\n", gate, "yes\n", pulls, "\n", write, "n\n"}, console.ExitRefused, "required: 2 ", []string{who + " [maintain]", "-  required: 2 ", "nothing was written"}},
		{[]string{"init", "--interactive"}, []string{who, "\n", many, "1\n", author, "no\n", gate, "yes\n", pulls, "\n", write, "y\n"}, 0, "\napply: {to: pull_request} #", []string{"+  required: 1 ", "+  merge_group:"}},
		{[]string{"init"}, nil, 0, "required: 1 ", nil},
		{[]string{"init", "--gate=false"}, []string{write, "\x04"}, console.ExitRefused, "required: 1 ", []string{"-  merge_group:"}},
	} {
		p := newTerminal(t)
		ended := p.starts(s.repo, map[string]string{"NO_COLOR": "1"}, c.args...)
		p.answers(c.answers...)
		code, out := ended()
		raw, _ := os.ReadFile(filepath.Join(s.repo, policy))
		if code != c.exit || !strings.Contains(string(raw), c.policy) || c.policy == "" && raw != nil {
			t.Errorf("%v %q: exit %d, want %d; the Policy is\n%s\n%s\n%s", c.args, c.answers, code, c.exit, raw, out, p.text())
		}
		for _, want := range c.shown {
			p.awaits(want)
		}
	}
	if out, _ := s.run(0, "policy", "check", policy); !strings.Contains(out, "valid") {
		t.Error(out)
	}
	// What is no answer is asked again.
	p := newTerminal(t)
	ended := p.starts(s.repo, map[string]string{"NO_COLOR": "1"}, "init", "--interactive")
	p.answers(who, "everybody\n")
	for !strings.Contains(strings.Replace(p.text(), who, "", 1), who) {
		<-p.more
	}
	p.types("\x04")
	if code, _ := ended(); code != console.ExitRefused {
		t.Errorf("exit %d\n%s", code, p.text())
	}
}

// TestInitMCPAsks: in a terminal init --mcp shows what it adds to files that are there, and adds nothing
// without a yes.
func TestInitMCPAsks(t *testing.T) {
	const mine, write = "{\"mcpServers\": {\"x\": {}}}\n", "Write these changes?"
	s := newSandbox(t, map[string]string{".mcp.json": mine, "AGENTS.md": "# Mine\n"})
	s.git("init", "-q", "-b", "main")
	for _, c := range []struct {
		answer string
		exit   int
	}{{"n\n", console.ExitRefused}, {"\x04", console.ExitRefused}, {"y\n", 0}} {
		p := newTerminal(t)
		ended := p.starts(s.repo, map[string]string{"NO_COLOR": "1"}, "init", "--mcp")
		p.answers(write, c.answer)
		code, out := ended()
		p.awaits(`+{"mcpServers": {"x": {}, "countersign": `)
		p.awaits("+## Changes are countersigned")
		changed := s.read(".mcp.json") != mine || s.read("AGENTS.md") != "# Mine\n"
		if code != c.exit || changed != (c.exit == 0) {
			t.Errorf("%q: exit %d, changed %v\n%s\n%s", c.answer, code, changed, out, p.text())
		}
	}
	if code, out := newTerminal(t).starts(s.repo, map[string]string{"NO_COLOR": "1"}, "init", "--mcp")(); code != 0 { // nothing is left to ask
		t.Errorf("exit %d\n%s", code, out)
	}
}
