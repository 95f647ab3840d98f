package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// sh is a script for the sandbox's shell.
func sh(script string) sandbox.Command { return sandbox.Command{Argv: []string{script}, Shell: true} }

// boxes are the sandboxes there are, by name.
func boxes(s sandbox.Sandbox) map[string]sandbox.Sandbox {
	weak, danger := sandbox.WithoutNamespaces(s), s
	weak.AcceptSeccomp = true
	danger.Mode = sandbox.DangerFullAccess
	return map[string]sandbox.Sandbox{"namespaces": s, "seccomp": weak, "danger": danger}
}

func TestResults(t *testing.T) {
	for _, c := range []struct {
		name           string
		command        sandbox.Command
		exit           int
		signal         string
		stdout, stderr string
	}{
		{"success", sh("echo out; echo err >&2"), 0, "", "out\n", "err\n"},
		{"failure", sh("exit 3"), 3, "", "", ""},
		{"killed", sh("kill -TERM $$"), 143, "terminated", "", ""},
		{"not through a shell", sandbox.Command{Argv: []string{"echo", "$HOME; `id` *"}}, 0, "", "$HOME; `id` *\n", ""},
		{"shell with arguments", sandbox.Command{Argv: []string{`echo "$1-$2"`, "a b", "c"}, Shell: true}, 0, "", "a b-c\n", ""},
		{"empty input", sandbox.Command{Argv: []string{"cat"}}, 0, "", "", ""},
		{"missing", sandbox.Command{Argv: []string{"no-such-program"}}, 127, "", "", "no-such-program: not found\n"},
		{"missing with a slash", sandbox.Command{Argv: []string{"./no"}}, 127, "", "", "./no: not found\n"},
		{"not executable", sandbox.Command{Argv: []string{"./data"}}, 126, "", "", "./data: cannot be executed: permission denied\n"},
		{"not a program", sandbox.Command{Argv: []string{"./junk"}}, 126, "", "", "./junk: cannot be executed: exec format error\n"},
		{"a directory", sandbox.Command{Argv: []string{"./"}}, 126, "", "", "./: cannot be executed: permission denied\n"},
		{"T34 a name is not looked for in the directory", sandbox.Command{Argv: []string{"here"}}, 127, "", "", "here: not found\n"},
		{"with a slash it is", sandbox.Command{Argv: []string{"./here"}}, 0, "", "here\n", ""},
		{"below the directory", sandbox.Command{Argv: []string{"sub/here"}}, 0, "", "here\n", ""},
		{"long arguments", sandbox.Command{Argv: []string{"true", strings.Repeat("x", 100<<10), strings.Repeat("y", 100<<10)}}, 0, "", "", ""},
		{"devices and files", sh("echo x >/dev/null && head -c1 /dev/urandom >a && mkdir b && mv a b/ && ln b/a c && echo t >$TMPDIR/t && echo h >$HOME/h"), 0, "", "", ""},
		{"an orphan is reaped", sh("(sleep 0 &) ; exit 5"), 5, "", "", ""},
	} {
		for kind, s := range boxes(writer) {
			if kind != "namespaces" && c.name != "success" && c.name != "missing" && os.Getenv("COUNTERSIGN_LONG") == "" {
				continue
			}
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				dir := openDir(t)
				must(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o644))
				must(t, os.WriteFile(filepath.Join(dir, "junk"), []byte("\x00\x01"), 0o755))
				must(t, teststand.WriteFile(filepath.Join(dir, "here"), []byte("#!/bin/sh\necho here\n")))
				must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
				must(t, teststand.WriteFile(filepath.Join(dir, "sub", "here"), []byte("#!/bin/sh\necho here\n")))
				r := run(t, s, dir, c.command)
				if r.ExitCode != c.exit || r.Signal != c.signal || string(r.Stdout) != c.stdout || string(r.Stderr) != c.stderr {
					t.Errorf("got %d %q %q %q", r.ExitCode, r.Signal, r.Stdout, r.Stderr)
				}
				if r.TimedOut || r.StdoutTruncated || r.StdoutTotal != int64(len(c.stdout)) || r.Duration <= 0 {
					t.Errorf("got %+v", r)
				}
			})
		}
	}
}

func TestProtectionInForce(t *testing.T) {
	r := run(t, writer, openDir(t), sh("grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups|Uid)' /proc/self/status; ls /proc/self/fd | wc -l; hostname; cut -d: -f1 /proc/net/dev | tail -n +3"))
	t.Logf("in force here: %+v\n%s", r.Protection, r.Stdout)
	for _, want := range []string{"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapInh:\t0000000000000000",
		"CapAmb:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "sandbox", "    lo"} {
		if !strings.Contains(string(r.Stdout), want) {
			t.Errorf("no %q", want)
		}
	}
	if os.Geteuid() == 0 && !strings.Contains(string(r.Stdout), "Uid:\t65533\t65533\t65533\t65533") {
		t.Error("not user 65533")
	}
	if r.Protection.Landlock == 0 || !r.Protection.Seccomp || r.Protection.NetworkFilter ||
		!slices.Equal(r.Protection.Namespaces, []string{"user", "mnt", "pid", "ipc", "uts", "net"}) {
		t.Errorf("got %+v", r.Protection)
	}
}

func TestT24Environment(t *testing.T) {
	w := newWorld(t)
	t.Setenv("GITHUB_TOKEN", token)
	for kind, s := range boxes(w.box()) {
		s.LookupEnv = os.LookupEnv
		s.Path = "/usr/bin:/bin"
		t.Setenv("ALLOWED", "yes")
		r := w.inside(t, s, sandbox.Command{Env: []string{"ALLOWED", "UNSET"}}, "environment")
		got := strings.Split(string(r.Stdout), "\n")
		if kind == "namespaces" && !slices.Equal(got, []string{"PATH=/usr/bin:/bin", "HOME=/tmp/home", "TMPDIR=/tmp", "LANG=C.UTF-8", "ALLOWED=yes"}) {
			t.Errorf("%s: %q", kind, got)
		}
		if len(got) != 5 || strings.Contains(string(r.Stdout), token) {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// Our own child waits outside the walls of the command, and has no environment either.
func TestT24OurChildHasNoEnvironment(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can look into a process that is closed")
	}
	t.Setenv("GITHUB_TOKEN", token)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = writer.Run(ctx, openDir(t), sh("sleep 1000"))
	}()
	defer func() { cancel(); <-done }()
	ours := func() []int { return slices.DeleteFunc(alive("countersign-sandbox-child"), notBelowUs) }
	waitFor(t, func() bool { return len(ours()) > 0 })
	for _, pid := range ours() {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err != nil || len(b) > 0 {
			t.Errorf("%q, %v", b, err)
		}
	}
}

// notBelowUs reports whether a process is none that this one, or one below it, has started: other tests run sandboxes, too.
func notBelowUs(pid int) bool {
	for pid > 1 && pid != os.Getpid() {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, parent, _ := strings.Cut(string(status), "\nPPid:\t")
		pid = 0
		_, _ = fmt.Sscan(parent, &pid)
	}
	return pid != os.Getpid()
}

// T34: what a repository could make programs do is not done by us.
func TestT34NothingOfTheRepositoryIsExecuted(t *testing.T) {
	dir := openDir(t)
	script := "#!/bin/sh\ntouch " + filepath.Join(dir, "executed") + "\n"
	for _, name := range []string{".git/hooks/post-checkout", ".git/hooks/pre-commit", "true", "sh", ".profile", ".bashrc", ".envrc", "bin/true"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, teststand.WriteFile(filepath.Join(dir, name), []byte(script)))
	}
	must(t, os.WriteFile(filepath.Join(dir, ".git/config"), []byte("[core]\n\tfsmonitor = ./true\n\thooksPath = .\n"), 0o644))
	for _, s := range boxes(sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, Path: ".:bin::/usr/bin:/bin", Self: executable}) {
		for _, c := range []sandbox.Command{{Argv: []string{"true"}}, sh("exit 0")} {
			if r := run(t, s, dir, c); r.ExitCode != 0 {
				t.Errorf("got %d %s", r.ExitCode, r.Stderr)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "executed")); err == nil {
		t.Error("something of the repository was executed")
	}
}
