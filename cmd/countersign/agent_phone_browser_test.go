//go:build browser && linux

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// T93 T94 Agents as their makers publish them each make a change behind the wall. bob, who runs them, takes a part of it, and makes a pull
// request of that; ada approves it on a phone, with a passkey; it is merged, and both verifiers take the record.
func TestT94AgentsByPhone(t *testing.T) {
	programs := agentsOfOthers(t)
	t.Setenv("TMPDIR", "/var/tmp") // of /dev and /tmp the sandbox shows others
	b := pagetest.Start(t)
	for _, args := range [][]string{
		{"claude", "-p", "make a file", "--permission-mode", "acceptEdits"},
		{"codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "make a file"},
	} {
		t.Run(args[0], func(t *testing.T) {
			g := &green{attack: newGuard(t, "")}
			phone := newPhone(g.hub, b)
			phone.makes("ada")

			g.by("bob")
			g.env["PATH"] = programs + ":" + os.Getenv("PATH")
			for _, v := range agentsModel(t, g.env["HOME"], g.dir, &strings.Builder{}) {
				name, value, _ := strings.Cut(v, "=")
				g.env[name] = value
			}
			newest := func() string {
				_, stdout, _ := g.run("list", "--open", "-q", "--mine", "--limit", "1")
				return strings.TrimSpace(stdout)
			}
			if code, stdout, stderr := g.run(append([]string{"agent", "--"}, args...)...); code != console.ExitPending {
				t.Fatalf("agent: %d %s%s", code, stdout, stderr)
			}
			whole := newest()
			p := newTerminal(t)
			end := p.starts(g.dir, g.env, "approve", whole, "--sign", "--key", phone.key)
			p.answers(question, "p\n", "Take this (1 of 2", "y\n", "Take this (2 of 2", "n\n", "Propose these 1 of 2", "y\n")
			p.awaits("takes the place of")
			for strings.Count(p.text(), question) < 2 {
				<-p.more
			}
			p.types("\n")
			if code, out := end(); code != console.ExitPending || g.git(g.dir, "status", "--short") != "" {
				t.Fatalf("exit code %d: %s\n%s", code, out, p.text())
			}
			part := newest()
			if code, stdout, stderr := g.run("propose", part, "--to", "pull-request"); code != 0 {
				t.Fatalf("propose: %d %s%s", code, stdout, stderr)
			}

			g.find()
			g.guards(asks)
			phone.publish()
			phone.loads(phone.origin, g.tx)
			line := phone.signs()
			g.says("bob", line)
			g.guards(asks, "lists the key for ada")
			g.says("ada", line)
			g.guards(passes)
			g.s.Merge(site, g.pr, "ada", "squash")
			g.settle(0)
			if got := g.s.File(site, "main", "made.txt"); got != "made by an agent\n" || g.status(g.tx) != "completed" || g.from != part {
				t.Errorf("%s, of %s, is %s, and main has %q", g.tx, g.from, g.status(g.tx), got)
			}
			if more := g.s.Git(site, "ls-tree", "--name-only", "main", "more.txt"); more != "" {
				t.Errorf("main has what bob did not take: %s", more)
			}
			phone.audits()
		})
	}
}
