package main

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// needsPerl skips a test whose agent speaks as no program of ours would.
func needsPerl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("NOT RUN: there is no perl, which plays the agent")
	}
}

// agentRepo is a repository of a person with keys, for agents to change. A test of what the kernel holds is skipped where
// it cannot.
func agentRepo(t *testing.T) playground {
	t.Helper()
	const temporary = "/var/tmp" // of /dev and /tmp the sandbox shows others
	s := sandboxIn(t, temporary, map[string]string{"greet.txt": "hello\n", "d/deep.txt": "deep\n", ".gitignore": "*.o\n"})
	s.own = []string{"TMPDIR=" + temporary}
	s.git("init", "-q", "-b", "main")
	s.git("config", "user.email", "tester")
	s.commit()
	program, err := os.ReadFile(s.bin)
	check(t, errors.Join(err, os.Mkdir(filepath.Join(s.dir, "tools"), 0o755)))
	check(t, teststand.WriteFile(filepath.Join(s.dir, "tools/countersign"), program))
	code, _, said := runCode(s.agent("--", "true"))
	if code == console.ExitRefused && strings.Contains(said, "the agent was not run") {
		t.Skip("NOTHING OF AGENTS IS TESTED ON THIS MACHINE: ", said)
	}
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	return s
}

// agent is a command that runs an agent.
func (s playground) agent(args ...string) *exec.Cmd {
	cmd := s.command(append([]string{"agent"}, args...)...)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(s.dir, ".cache"), "PATH="+filepath.Join(s.dir, "tools")+":"+os.Getenv("PATH"))
	return cmd
}

// scratches are the names of the scratch trees that there are.
func (s playground) scratches() (names []string) {
	found, err := filepath.Glob(filepath.Join(s.dir, ".cache/countersign/agents/*/agent-*"))
	check(s.t, err)
	for _, dir := range found {
		names = append(names, filepath.Base(dir))
	}
	return names
}

// digest is everything below a directory but for scratch trees: names, modes, times and content, a line each.
func digest(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	check(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".cache" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			sum = fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		fmt.Fprintf(&all, "%s %v %v%s\n", name, info.Mode(), info.ModTime(), sum)
		return nil
	}))
	return all.String()
}

// T93 A hostile agent changes nothing outside its scratch tree, reads no key, reaches no socket, and decides nothing. Without
// the sandbox the same script owns much, so that it is the sandbox that holds it.
func TestT93HostileAgent(t *testing.T) {
	t.Parallel()
	root := os.Geteuid() == 0
	for _, c := range []struct {
		name     string
		as, held bool // as a user whom file modes stop, where root runs this
		args     []string
	}{
		{"held", false, true, nil}, {"held, without the network", false, true, []string{"--no-network"}}, {"held, by a user", root, true, nil},
		{"not held", root, false, []string{"--without-sandbox"}}, // which root may not try
	} {
		if c.name != "held" && !everything() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			usualUmask()
			s := agentRepo(t)
			for _, key := range []string{".ssh/id_ed25519", ".config/gh/hosts.yml", ".gnupg/key", ".git-credentials", ".netrc", ".bashrc"} {
				s.write("../"+key, "secret\n")
			}
			s.write(".countersign.yml", "version: 1\n")
			s.write("../waits.patch", addition("added.txt", "added\n"))
			s.run(0, "review", "--patch", "../waits.patch")
			id := s.newest()
			socket, abstract := filepath.Join(s.dir, "agent.sock"), filepath.Base(s.dir)
			for _, address := range []string{socket, "@" + abstract} {
				l, err := net.Listen("unix", address)
				check(t, err)
				t.Cleanup(func() { _ = l.Close() })
			}
			check(t, os.Chmod(socket, 0o777))
			victim := exec.Command("sleep", "1000")
			check(t, victim.Start())
			t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
			script, err := os.ReadFile("testdata/agent/hostile.sh")
			check(t, err)
			cmd := s.agent(append(c.args, "--", "sh", "-c", string(script)+"\n", "hostile", s.repo, s.dir, id, socket, abstract, fmt.Sprint(victim.Process.Pid))...)
			cmd.Env = append(cmd.Env, "SSH_AUTH_SOCK="+socket, "DBUS_SESSION_BUS_ADDRESS=unix:path="+socket, "COUNTERSIGN_TOKEN=secret", "GITHUB_TOKEN=secret")
			if c.as {
				check(t, exec.Command("chown", "-R", fmt.Sprintf("%d:%d", nobody, nobody), s.dir).Run())
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			before := digest(t, s.dir)
			_, stdout, stderr := runCode(cmd)
			owned, tried := strings.Count(stdout, "OWNED "), 0
			if _, last, is := strings.Cut(stdout, "TRIED "); is {
				_, _ = fmt.Sscan(last, &tried)
			}
			if tried < 200 {
				t.Errorf("it tried %d things:\n%s\n%s", tried, stdout, stderr)
			}
			t.Logf("%d of %d attempts work", owned, tried)
			if !c.held {
				if owned < 60 || !strings.Contains(stdout, "OWNED countersign approve") || !strings.Contains(stdout, "OWNED git update-ref") {
					t.Errorf("without the sandbox only %d attempts work, so that the others prove nothing:\n%s", owned, stdout)
				}
				if !strings.Contains(stderr, "WITHOUT A SANDBOX") {
					t.Errorf("it does not say what is not true:\n%s", stderr)
				}
				return
			}
			if owned > 0 || !strings.Contains(stderr, "changed nothing") && !strings.Contains(stderr, "symbolic link") {
				t.Errorf("%d attempts worked:\n%s\n%s", owned, stdout, stderr)
			}
			if after := digest(t, s.dir); after != before {
				t.Errorf("it changed something outside:\n%s", differing(before, after))
			}
			if c.as {
				check(t, exec.Command("chown", "-R", "0:0", s.dir).Run())
			}
			if n := s.decisions(id); n != 0 {
				t.Errorf("it made %d decisions", n)
			}
		})
	}
}

// differing are the lines that only one of two texts has.
func differing(before, after string) string {
	var out strings.Builder
	for line := range strings.Lines(before) {
		if !strings.Contains(after, line) {
			out.WriteString("- " + line)
		}
	}
	for line := range strings.Lines(after) {
		if !strings.Contains(before, line) {
			out.WriteString("+ " + line)
		}
	}
	return out.String()
}

// What an agent changes is proposed and, once a person has approved it at the terminal, applied: to the working tree, or to a branch.
func TestAgentIsAsked(t *testing.T) {
	long(t)
	t.Parallel()
	s := agentRepo(t)
	env := map[string]string{}
	for _, name := range []string{"HOME", "PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_AUTHOR_EMAIL"} {
		env[name] = s.getenv(name)
	}
	p := newTerminal(t)
	end := p.starts(s.repo, env, "agent", "--no-network", "--", "sh", "-c",
		"echo new >new.txt; echo more >>greet.txt; echo x >left.o; rm d/deep.txt; git add -A; git -c user.name=o commit -qm own; exit 3")
	p.answers(question, "y\n")
	if code, out := end(); code != 3 || !strings.Contains(out, "Applied") {
		t.Errorf("exit code %d: %s\n%s", code, out, p.text())
	}
	if got := s.read("greet.txt") + s.read("new.txt"); got != "hello\nmore\nnew\n" {
		t.Errorf("the files are %q", got)
	}
	if status := s.git("status", "--short"); status != " D d/deep.txt\n M greet.txt\n?? new.txt\n" {
		t.Errorf("git status:\n%s", status)
	}
	if left := s.scratches(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	s.git("add", "-A")
	s.commit()
	p = newTerminal(t)
	end = p.starts(s.repo, env, "agent", "--to", "branch", "--branch", "agents", "--", "sh", "-c", "echo branch >greet.txt")
	p.answers(question, "y\n")
	if code, out := end(); code != 0 || s.git("show", "agents:greet.txt") != "branch\n" || s.read("greet.txt") != "hello\nmore\n" {
		t.Errorf("exit code %d: %s\n%s", code, out, p.text())
	}
	p = newTerminal(t)
	end = p.starts(s.repo, env, "agent", "--", "sh", "-c", "echo no >greet.txt")
	p.answers(question, "d\n", "Why? ", "not so\n")
	p.awaits("denied by tester: not so")
	if code, _ := end(); code != console.ExitDenied || s.read("greet.txt") != "hello\nmore\n" || len(s.scratches()) != 1 {
		t.Errorf("exit code %d: %v\n%s", code, s.scratches(), p.text())
	}
	s.runCmd(0, s.agent("--discard"))
	p = newTerminal(t)
	end = p.starts(s.repo, env, "agent", "--", "sh", "-c", "echo taken >new.txt; echo left >greet.txt")
	p.answers(question, "p\n", "Take this (1 of 2", "n\n", "Take this (2 of 2", "y\n", "Propose these 1 of 2", "y\n")
	p.awaits("takes the place of")
	for strings.Count(p.text(), question) < 2 {
		<-p.more
	}
	p.types("y\n")
	if code, out := end(); code != 0 || s.read("new.txt") != "taken\n" || s.read("greet.txt") == "left\n" || len(s.scratches()) != 1 {
		t.Errorf("exit code %d: %s\n%s", code, out, p.text())
	}
	s.run(0, "audit")
}

// An agent has the files that its profile says: sessions that it writes, settings of which it changes a copy, and nothing else.
func TestAgentsProfile(t *testing.T) {
	t.Parallel()
	s := agentRepo(t)
	for _, name := range []string{".claude/settings.json", ".claude.json", ".claude/projects/old", ".claude/plugins/one", ".claude/secret", ".ssh/key"} {
		s.write("../"+name, "old\n")
	}
	script := `#!/bin/sh
cd; cat .claude/settings.json .claude.json .claude/projects/old .claude/plugins/one; ls .claude/secret .ssh 2>/dev/null
for file in .claude/settings.json .claude.json .claude/projects/new .claude/plugins/one .claude/secret .ssh/key; do echo new >$file; done 2>/dev/null
ln -s ../../.ssh/key .claude/projects/link 2>/dev/null; exit 0
`
	check(t, teststand.WriteFile(filepath.Join(s.dir, "tools/claude"), []byte(script)))
	if out, _ := s.runCmd(0, s.agent("--", "claude")); out != strings.Repeat("old\n", 4) {
		t.Errorf("it sees %q", out)
	}
	for name, want := range map[string]string{
		".claude/settings.json": "old\n", ".claude.json": "old\n", ".claude/plugins/one": "old\n",
		".claude/projects/new": "new\n", ".claude/secret": "old\n", ".ssh/key": "old\n",
	} {
		if got := s.read("../" + name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(s.dir, ".claude/projects/link")); err == nil {
		t.Error("it left a link that whoever writes there later would follow")
	}
}

// traceOf is the trace that a transaction has, as it is stored, "" for none.
func (s playground) traceOf(id string) (trace string) {
	s.t.Helper()
	for line := range strings.Lines(s.git("ls-tree", "-r", "--name-only", "refs/agent/ledger", "transactions")) {
		if name := strings.TrimSpace(line); strings.Contains(name, id+"/artifacts/") {
			if text := s.git("show", "refs/agent/ledger:"+name); strings.Contains(text, `"countersign/trace/1"`) {
				trace += text
			}
		}
	}
	return trace
}

// What an agent's log tells of this run is recorded with its change, without secrets. What is none, or another session's, is not, and keeps
// nothing from being proposed.
func TestAgentsTrace(t *testing.T) {
	t.Parallel()
	s := agentRepo(t)
	script := `#!/bin/sh
logs=$HOME/.claude/projects/here; mkdir -p "$logs"
log() { printf '{"type":"assistant","cwd":"%s","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"%s"}}]}}\n' "$1" "$2"; }
echo "$*" >greet.txt; eval "$1"
`
	check(t, teststand.WriteFile(filepath.Join(s.dir, "tools/claude"), []byte(script)))
	const secret = "ghp_" + "Zx81mQp0LkTy47VbNc63RdWs29HgJf5aEuOi"
	for i, c := range []struct{ does, recorded, told string }{
		{`log "$PWD" "export TOKEN=` + secret + `" >"$logs/a.jsonl"`, "export TOKEN=", ""},
		{`log "$PWD" linked >"$logs/a"; ln -s a "$logs/a.jsonl"`, "", "not a regular file"},
		{`mkfifo "$logs/a.jsonl"`, "", "not a regular file"},
		{`rm -r "$HOME/.claude"; ln -s "` + s.dir + `/.claude" "$HOME/.claude"`, "", ""},
		{`log "$PWD" older >"$logs/a.jsonl"; sleep 0.1; log /home/other newer >"$logs/b.jsonl"`, "older", ""},
		{`log /home/other theirs >"$logs/a.jsonl"`, "", ""},
		{`log "$PWD" old >"$logs/a.jsonl"; touch -d 2001-01-01 "$logs/a.jsonl"`, "", ""},
		{`echo none >"$logs/a.jsonl"`, "", ""},
		{`log "$PWD" huge >"$logs/a.jsonl"; truncate -s 65M "$logs/a.jsonl"`, "", "a.jsonl: the patch or the content that it adds is larger than the limit of 64 MiB"},
		{`printf '{"cwd":"%s"}\n' "$PWD" >"$logs/a.jsonl"`, "", "a.jsonl"},
	} {
		if i > 1 && !everything() {
			break
		}
		if i == 4 { // from here on its logs are in the person's home
			s.write("../.claude/projects/here/c.jsonl", "")
		}
		_, said := s.runCmd(console.ExitPending, s.agent("--detach", "--", "claude", c.does))
		trace := s.traceOf(s.newest())
		if !strings.Contains(trace, c.recorded) || (trace == "") != (c.recorded == "") || strings.Contains(trace, secret) {
			t.Errorf("%s: the trace is %q\n%s", c.does, trace, said)
		}
		if is := strings.Contains(said, "what the agent did is not recorded"); is != (c.told != "") || !strings.Contains(said, c.told) {
			t.Errorf("%s: it is told:\n%s", c.does, said)
		}
		for _, name := range s.scratches() {
			if left, _ := filepath.Glob(filepath.Join(s.dir, ".cache/countersign/agents/*", name, "home")); len(left) > 0 {
				t.Errorf("the agent's home is left: %v", left)
			}
			s.runCmd(0, s.agent("--discard", name))
		}
		check(t, os.RemoveAll(filepath.Join(s.dir, ".claude/projects/here/a.jsonl")))
		check(t, os.RemoveAll(filepath.Join(s.dir, ".claude/projects/here/b.jsonl")))
	}
	s.run(0, "audit")
}

// A denial reaches the agent, which is run once more where it left off. An approval by another command is as good as one at the terminal.
func TestAgentDeniedAndResumed(t *testing.T) {
	long(t)
	t.Parallel()
	s := agentRepo(t)
	check(t, os.WriteFile(filepath.Join(s.dir, "victim"), []byte("victim\n"), 0o644))
	_, said := s.runCmd(console.ExitPending, s.agent("--", "sh", "-c", "echo bad >greet.txt; mkdir -p .git; ln -sf "+s.dir+"/victim .git/DENIED"))
	if !strings.Contains(said, "--resume "+s.scratches()[0]) {
		t.Errorf("it does not say how to go on:\n%s", said)
	}
	id := s.newest()
	s.run(0, "deny", id[len(id)-7:], "--reason", "say hello nicely")
	out, said := s.runCmd(console.ExitPending, s.agent("--resume", "--", "sh", "-c", "cat .git/DENIED greet.txt; echo good >greet.txt"))
	if !strings.Contains(out, "denied by tester: say hello nicely\nbad\n") {
		t.Errorf("the agent does not hear why:\n%s\n%s", out, said)
	}
	if victim, _ := os.ReadFile(filepath.Join(s.dir, "victim")); string(victim) != "victim\n" {
		t.Errorf("the reason was written through a link: %q", victim)
	}
	if again := s.newest(); again == id {
		t.Error("there is no new transaction")
	}
	_, said = s.runCmd(console.ExitDenied, s.agent("--resume", "--", "sh", "-c", "echo bad >greet.txt"))
	if !strings.Contains(said, "say hello nicely") {
		t.Errorf("the same bytes are not denied with their reason:\n%s", said)
	}
	s.run(0, "approve", s.newest()[19:])
	s.run(0, "run", s.newest())
	s.runCmd(0, s.agent("--discard"))
	if s.read("greet.txt") != "good\n" || len(s.scratches()) != 0 {
		t.Errorf("the file is %q; left: %v", s.read("greet.txt"), s.scratches())
	}
	s.runCmd(console.ExitRefused, s.agent("--resume"))
}

// Directories that an agent closes hide nothing, and keep nobody from going on; pipes in the place of files that Git reads keep nobody waiting.
func TestAgentClosesAndPipes(t *testing.T) {
	long(t)
	t.Parallel()
	usualUmask()
	s := agentRepo(t)
	root := os.Geteuid() == 0
	if root { // whom modes do not stop
		check(t, exec.Command("chown", "-R", fmt.Sprintf("%d:%d", nobody, nobody), s.dir).Run())
	}
	run := func(want int, args ...string) string {
		cmd := s.agent(append([]string{"--detach"}, args...)...)
		if root {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		_, said := s.runCmd(want, cmd)
		return said
	}
	run(console.ExitPending, "--", "sh", "-c", "mkdir n; echo x >n/x; echo y >d/deep.txt; chmod 000 n d")
	run(console.ExitPending, "--resume", "--", "sh", "-c", "ls n d && echo more >more.txt; chmod 000 .")
	if diff, _ := s.asNobody(0, "diff", s.newest()); strings.Count(diff, "\n+++ ") != 3 {
		t.Errorf("the diff is\n%s", diff)
	}
	for _, pipe := range []string{
		"mkfifo .gitattributes", "mkfifo d/.gitignore", "mkfifo .gitmodules", "mkfifo p; ln -s p .gitmodules", "rm .gitignore; mkfifo .gitignore",
	} {
		if said := run(console.ExitRefused, "--resume", "--", "sh", "-c", pipe); !strings.Contains(said, "is no file") {
			t.Errorf("%s: %s", pipe, said)
		}
		run(console.ExitPending, "--resume", "--", "sh", "-c", "rm -f .gitattributes d/.gitignore .gitmodules .gitignore p; git checkout -q .gitignore")
	}
	run(0, "--discard")
}

// While it runs, an agent proposes what it has, over MCP, and hears what the person says: each round is a transaction in the place of the
// last. A signal asks for the same.
func TestAgentProposes(t *testing.T) {
	t.Parallel()
	needsPerl(t)
	s := agentRepo(t)
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}`
	script := `call() { perl -MIPC::Open2 -e 'my $p = open2(my $out, my $in, "countersign", "mcp"); print $in "$_\n" for @ARGV;
	while (<$out>) { if (/"id":2/) { print; last } } close $in; waitpid $p, 0' \
	"$0" '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"'$1'","arguments":{'$2'}}}'; }
trap 'echo signalled' USR1
call status; echo draft >greet.txt; call propose_worktree; echo bad >greet.txt; call propose_worktree; echo proposed
said=$(call wait '"seconds":60'); case $said in *'denied by tester: say hello nicely'*) ;; *) echo "$said"; exit 9; esac
echo good >greet.txt; echo ready; read line
call wait '"seconds":60'; call status '"x":1'; exit 0`
	cmd := s.agent("--no-network", "--", "sh", "-c", script, begin)
	out, err := cmd.StdoutPipe()
	check(t, err)
	in, err := cmd.StdinPipe()
	check(t, errors.Join(err, cmd.Start()))
	heard := bufio.NewReader(out)
	until := func(line string) (all string) {
		for !strings.HasSuffix(all, line+"\n") {
			one, err := heard.ReadString('\n')
			if all += one; err != nil {
				t.Fatalf("%v, before %q: %s", err, line, all)
			}
		}
		return all
	}
	said := until("proposed")
	if !strings.Contains(said, "nothing of this scratch tree is proposed yet") || strings.Count(said, `"verdict":"pending"`) < 2 {
		t.Errorf("the agent hears %s", said)
	}
	bad := s.newest()
	s.run(0, "deny", bad, "--reason", "say hello nicely")
	until("ready")
	check(t, cmd.Process.Signal(syscall.SIGUSR1))
	good := bad
	for deadline := time.Now().Add(time.Minute); good == bad && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		good = s.newest()
	}
	_, err = in.Write([]byte("\n"))
	check(t, err)
	s.run(0, "approve", good)
	s.run(0, "run", good)
	rest, err := io.ReadAll(heard)
	check(t, err)
	if err := cmd.Wait(); err != nil || !strings.Contains(string(rest), `"decided":true`) || s.read("greet.txt") != "good\n" || len(s.scratches()) != 0 {
		t.Errorf("%v: the agent hears %s; greet.txt is %q, left %v", err, rest, s.read("greet.txt"), s.scratches())
	}
	if n := s.validLedger(); n != 3 {
		t.Errorf("%d transactions", n)
	}
	s.run(0, "audit")
}

// An agent that makes the bytes of somebody else's open transaction does not end that by what it makes next, asked for or at its end.
func TestAgentFindsAnothers(t *testing.T) {
	long(t)
	t.Parallel()
	needsPerl(t)
	s := agentRepo(t)
	const ask = `ask() { perl -MIO::Socket::UNIX -e '
	my $c = IO::Socket::UNIX->new(Peer => $ENV{COUNTERSIGN_SCRATCH}) or die $!; print $c "propose\n"; $c->flush; print <$c>'; }; `
	var theirs []string
	for _, text := range []string{"asked", "ended"} {
		theirs = append(theirs, s.proposes(text, addition(text+".txt", text+"\n")))
	}
	s.runCmd(console.ExitPending, s.agent("--detach", "--", "sh", "-c", ask+`echo asked >asked.txt; ask; echo more >>asked.txt; ask`))
	s.run(0, "agent", "--discard")
	s.runCmd(console.ExitPending, s.agent("--detach", "--", "sh", "-c", `echo ended >ended.txt`))
	s.runCmd(console.ExitPending, s.agent("--resume", "--detach", "--", "sh", "-c", `echo more >>ended.txt`))
	mine := s.newest()
	s.runCmd(console.ExitPending, s.agent("--resume", "--detach", "--", "sh", "-c", ask+`echo more >>ended.txt; ask`))
	for id, status := range map[string]string{theirs[0]: "waits for approval", theirs[1]: "waits for approval", mine: "superseded"} {
		if out, _ := s.run(0, "show", id); !strings.Contains(out, status) {
			t.Errorf("%s", out)
		}
	}
	if out, _ := s.run(0, "show", s.newest()); strings.Contains(out, "agent@localhost") {
		t.Errorf("it is somebody else's as well: %s", out)
	}
}

// What an agent puts into a repository of its own is not proposed, and not lost.
func TestAgentNests(t *testing.T) {
	long(t)
	t.Parallel()
	s := agentRepo(t)
	code, _, said := runCode(s.agent("--", "sh", "-c", "rm -rf .git; touch .git; git init -q z/own; echo work >z/own/file"))
	if left := s.scratches(); code == 0 || len(left) != 1 || !strings.Contains(said, "z/own is a repository of its own: nothing of it is proposed") {
		t.Errorf("exit code %d, left %v: %s", code, left, said)
	}
}

// An agent that is killed, or whose machine goes down, leaves what it did; nothing was proposed.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	s := agentRepo(t)
	cmd := s.agent("--", "sh", "-c", "echo half >greet.txt; echo ready; sleep 1000")
	out, err := cmd.StdoutPipe()
	check(t, errors.Join(err, cmd.Start()))
	line := make([]byte, 6)
	_, err = io.ReadFull(out, line)
	check(t, err)
	check(t, cmd.Process.Kill())
	_, err = io.ReadAll(out) // which is open until the agent is gone as well
	check(t, err)
	_ = cmd.Wait()
	stdout, _ := s.runCmd(console.ExitPending, s.agent("--resume", "--", "sh", "-c", "cat greet.txt; echo whole >greet.txt"))
	if !strings.HasPrefix(stdout, "half\n") || s.read("greet.txt") != "hello\n" {
		t.Errorf("%s\n%q", stdout, s.read("greet.txt"))
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, ".cache/countersign/agents/*/*/*/sandbox-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	made, err := filepath.Glob(filepath.Join(s.dir, ".cache/countersign/agents/*/agent-*/state.json"))
	check(t, errors.Join(err, os.Remove(made[0]))) // as if it had been killed before it was made
	s.runCmd(console.ExitRefused, s.agent("--resume", "--", "true"))
	s.runCmd(0, s.agent("--discard"))
	if left := s.scratches(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// Several agents at once on one repository do not see each other, and each has its own transaction.
func TestAgentsAtOnce(t *testing.T) {
	long(t)
	t.Parallel()
	s := agentRepo(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			cmd := s.agent("--detach", "--", "sh", "-c", fmt.Sprintf("ls ..; sleep 0.2; echo %d >new%d.txt; ls | wc -l", i, i))
			if code, out, said := runCode(cmd); code != console.ExitPending || !strings.HasPrefix(out, "3\n") || !strings.Contains(out, "countersign approve") {
				t.Errorf("exit code %d: %s\n%s", code, out, said)
			}
		})
	}
	all.Wait()
	if n := s.validLedger(); n != 4 || len(s.scratches()) != 4 {
		t.Errorf("%d transactions, scratch trees %v", n, s.scratches())
	}
	s.runCmd(console.ExitRefused, s.agent("--discard"))
	for _, name := range s.scratches() {
		s.runCmd(0, s.agent("--discard", name))
	}
	if left := s.scratches(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// Exit codes, variables, changes that are not committed, and command lines that cannot be obeyed.
func TestAgentRuns(t *testing.T) {
	long(t)
	t.Parallel()
	s := agentRepo(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	dial := "bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + port + "' 2>/dev/null && echo reached; exit 0"
	s.write("greet.txt", "mine\n")
	s.write("new.txt", "new\n")
	for _, c := range []struct {
		args []string
		exit int
		out  string
	}{
		{[]string{"--", "sh", "-c", "exit 7"}, 7, ""}, {[]string{"--", "sh", "-c", "kill -9 $$"}, 137, ""}, {[]string{"--", "no-such-agent"}, 127, ""},
		{[]string{"--without-sandbox", "--", "no-such-agent"}, 127, ""},
		{[]string{"--without-sandbox", "--", "sh", "-c", "echo $COUNTERSIGN_TOKEN; exit 7"}, 7, "\n"},
		{[]string{"--", "cat", "greet.txt"}, 0, "hello\n"}, {[]string{"--", "sh", "-c", "echo $SECRET$COUNTERSIGN_TOKEN$OPENAI_API_KEY"}, 0, "\n"},
		{[]string{"--env", "SECRET", "--profile", "codex", "--", "sh", "-c", "echo $SECRET$COUNTERSIGN_TOKEN$OPENAI_API_KEY"}, 0, "sk\n"},
		{[]string{"--", "sh", "-c", dial}, 0, "reached\n"}, {[]string{"--no-network", "--", "sh", "-c", dial}, 0, ""},
		{[]string{"--with-changes", "--", "sh", "-c", "cat greet.txt new.txt; git status --short; git checkout -q .; rm new.txt"}, 0, "mine\nnew\n M greet.txt\n?? new.txt\n"},
		{nil, console.ExitRefused, ""}, {[]string{"true"}, console.ExitRefused, ""}, {[]string{"x", "--", "true"}, console.ExitRefused, ""},
		{[]string{"--profile", "x", "--", "true"}, console.ExitRefused, ""},
		{[]string{"--env", "COUNTERSIGN_TOKEN", "--", "true"}, console.ExitRefused, ""}, {[]string{"--env", "SSH_AUTH_SOCK", "--", "true"}, console.ExitRefused, ""},
		{[]string{"--resume", "../x"}, console.ExitRefused, ""}, {[]string{"--resume", "--with-changes"}, console.ExitRefused, ""}, {[]string{"--discard", "--", "true"}, console.ExitRefused, ""},
		{[]string{"--without-sandbox", "--no-network", "--", "true"}, console.ExitRefused, ""},
	} {
		cmd := s.agent(c.args...)
		cmd.Env = append(cmd.Env, "SECRET=s", "OPENAI_API_KEY=k", "COUNTERSIGN_TOKEN=t", "SSH_AUTH_SOCK=/x")
		if out, said := s.runCmd(c.exit, cmd); out != c.out || strings.Contains(said, "is left") {
			t.Errorf("%q: %q, want %q\n%s", c.args, out, c.out, said)
		}
	}
	if left := s.scratches(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	// What is not committed is proposed with what the agent adds to it.
	s.runCmd(console.ExitPending, s.agent("--with-changes", "--", "sh", "-c", "echo agent >>new.txt"))
	if diff, _ := s.run(0, "diff"); !strings.Contains(diff, "+mine") || !strings.Contains(diff, "+agent") {
		t.Errorf("the diff is\n%s", diff)
	}
}

// What an agent leaves as .git, in its tree and below, has no part in what is proposed: nothing of it is run.
func TestAgentsGitIsNotAsked(t *testing.T) {
	long(t)
	t.Parallel()
	s := agentRepo(t)
	plant := `git config core.fsmonitor "touch OUT"; git config filter.x.clean "touch OUT; cat"; git config core.worktree REPO; echo '* filter=x' >.gitattributes
mkdir sub; git init -q sub; git -C sub config core.fsmonitor "touch OUT"; echo x >sub/x; printf '#!/bin/sh\ntouch OUT\n' >.git/hooks/post-index-change; chmod +x .git/hooks/*
git update-index --assume-unchanged d/deep.txt; echo changed >d/deep.txt; touch -d '2001-01-01' d/deep.txt; `
	out := filepath.Join(s.dir, "ran")
	plant = strings.NewReplacer("OUT", out, "REPO", s.repo).Replace("mkdir -p .git/hooks; " + plant)
	for _, then := range []string{"", "rm -rf .git", "rm -rf .git; ln -s " + s.repo + "/.git .git", "rm -rf .git; echo gitdir: " + s.repo + "/.git >.git", "echo '*' >.git/info/exclude; mkdir -p .git/info; echo '*' >.git/info/exclude"} {
		before := digest(t, s.repo)
		s.runCmd(console.ExitPending, s.agent("--", "sh", "-c", plant+then))
		diff, _ := s.run(0, "diff", s.newest())
		if !strings.Contains(diff, "+changed") || !strings.Contains(diff, ".gitattributes") || strings.Contains(diff, "sub/x") {
			t.Errorf("%q: the diff is\n%s", then, diff)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%q: a program that the agent named was run", then)
		}
		if changed := differing(before, digest(t, s.repo)); strings.Contains(changed, "greet.txt") || strings.Contains(changed, "/config ") {
			t.Errorf("%q: changed are\n%s", then, changed)
		}
		for _, name := range s.scratches() {
			s.runCmd(0, s.agent("--discard", name))
		}
	}
}

// At a terminal of its own the agent has the same one: Ctrl-C and the window's size reach it, Ctrl-C does not end us, it cannot
// type an answer, and what it does to the terminal does not outlast it.
func TestAgentAtTerminal(t *testing.T) {
	t.Parallel()
	needsPerl(t)
	s := agentRepo(t)
	p := newTerminal(t)
	check(t, unix.IoctlSetWinsize(int(p.outer.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77}))
	script := `stolen() {
	perl -e 'use POSIX; setpgrp; $SIG{TTOU} = "IGNORE"; POSIX::tcsetpgrp(0, $$)'
	trap '' TTOU; printf 'heard\\033[?1049h\\033[?1000h'; stty -echo raw rows 9 columns 9999; echo new >greet.txt
	perl -e 'use POSIX; fcntl(STDIN, F_SETFL, O_RDWR | O_NONBLOCK); tcflow(0, TCOOFF)'; exit 5
}
trap stolen INT
stty size; : </dev/tty && echo same
perl -e 'ioctl(STDIN, 0x5412, $_) or print "untyped " for split //, "y\n"'
echo ready; while :; do sleep 0.1; done`
	cmd := s.agent("--", "sh", "-c", script)
	cmd.Env = append(cmd.Env, "TERM=xterm", "COUNTERSIGN_PAGER=cat")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.inner, p.inner, p.inner
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	check(t, cmd.Start())
	p.awaits("33 77")
	p.awaits("untyped untyped")
	p.awaits("ready")
	if text := p.text(); !strings.Contains(text, "same") {
		t.Errorf("it has another terminal:\n%s", text)
	}
	p.types("\x03")
	p.awaits("heard")
	p.awaits("\x1b[?1047l\x1b[?1000l")
	p.types("y\n") // as the terminal's answer to what the agent asked it
	p.awaits("$p")
	asked := p.text()[strings.LastIndex(p.text(), "\x1b[?1"):]
	if !strings.Contains(p.text(), "\x1b[?7h\x1b7\x1b[?69l\x1b[r\x1b8") {
		t.Errorf("lines may be cut, or be shown in a part of the screen: %q", p.text())
	}
	p.types("\x1b[1;1R\x1b[44;55R" + asked[:strings.Index(asked, "$p")] + ";0$y")
	p.awaits(question)
	flags, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/0", cmd.Process.Pid)) // Fd would change them
	if waits := strings.Contains(string(flags), "flags:\t0100002\n") || strings.Contains(string(flags), "flags:\t02\n"); err != nil || !waits {
		t.Errorf("who reads an answer does not wait for it: %s, %v", flags, err)
	}
	if size, err := unix.IoctlGetWinsize(int(p.inner.Fd()), unix.TIOCGWINSZ); err != nil || size.Row != 44 || size.Col != 55 {
		t.Errorf("the size is %+v, %v", size, err)
	}
	settings, err := unix.IoctlGetTermios(int(p.inner.Fd()), unix.TCGETS)
	check(t, err)
	if settings.Lflag&unix.ECHO == 0 || settings.Lflag&unix.ICANON == 0 {
		t.Error("the terminal is as the agent left it")
	}
	p.types("n\n")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != console.ExitPending || s.read("greet.txt") != "hello\n" {
		t.Errorf("exit code %d:\n%s", code, p.text())
	}
}
