package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"golang.org/x/sys/unix"
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

var writer = sandbox.Sandbox{Mode: sandbox.WorkspaceWrite}

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
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				dir := openDir(t)
				must(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o644))
				must(t, os.WriteFile(filepath.Join(dir, "junk"), []byte("\x00\x01"), 0o755))
				must(t, os.WriteFile(filepath.Join(dir, "here"), []byte("#!/bin/sh\necho here\n"), 0o755))
				must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
				must(t, os.WriteFile(filepath.Join(dir, "sub", "here"), []byte("#!/bin/sh\necho here\n"), 0o755))
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
	waitFor(t, func() bool { return len(alive("countersign-sandbox-child")) > 0 })
	for _, pid := range alive("countersign-sandbox-child") {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err != nil || len(b) > 0 {
			t.Errorf("%q, %v", b, err)
		}
	}
}

// T34: what a repository could make programs do is not done by us.
func TestT34NothingOfTheRepositoryIsExecuted(t *testing.T) {
	dir := openDir(t)
	script := "#!/bin/sh\ntouch " + filepath.Join(dir, "executed") + "\n"
	for _, name := range []string{".git/hooks/post-checkout", ".git/hooks/pre-commit", "true", "sh", ".profile", ".bashrc", ".envrc", "bin/true"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(dir, ".git/config"), []byte("[core]\n\tfsmonitor = ./true\n\thooksPath = .\n"), 0o644))
	for _, s := range boxes(sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, Path: ".:bin::/usr/bin:/bin"}) {
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

func TestTimeLimit(t *testing.T) {
	for kind, s := range boxes(writer) {
		c := sh("echo begun; trap '' TERM; sleep 1000 & sleep 1000")
		c.Timeout = 200 * time.Millisecond
		r := run(t, s, openDir(t), c)
		if !r.TimedOut || r.Signal != "killed" || string(r.Stdout) != "begun\n" || r.Duration > 2*time.Second {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

func TestCancel(t *testing.T) {
	for kind, s := range boxes(writer) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		r, err := s.Run(ctx, openDir(t), sh("sleep 1000"))
		if !errors.Is(err, context.Canceled) || r.TimedOut || r.Duration > 2*time.Second {
			t.Errorf("%s: %v, %+v", kind, err, r)
		}
		if _, err := s.Run(ctx, openDir(t), sh("true")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// alive are the processes that have name among their arguments.
func alive(name string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		var pid int
		if fmt.Sscanf(f, "/proc/%d/", &pid); slices.Contains(strings.Split(string(b), "\x00"), name) && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestNothingIsLeftBehind(t *testing.T) {
	w := newWorld(t)
	name := fmt.Sprint("left-outside-", os.Getpid())
	must(t, w.outside("leave", name))
	pids := alive(name)
	if len(pids) != 1 {
		t.Fatalf("outside a sandbox %d processes are left, so the test proves nothing", len(pids))
	}
	must(t, syscall.Kill(pids[0], syscall.SIGKILL))
	for kind, s := range boxes(w.box()) {
		if kind == "danger" {
			continue // a session of its own escapes there, as documented
		}
		name := fmt.Sprintf("left-by-%s-%d", kind, os.Getpid())
		r := w.inside(t, s, sandbox.Command{}, "leave", name)
		if r.ExitCode != 0 || r.Duration > time.Second {
			t.Errorf("%s: exit code %d after %v: %s", kind, r.ExitCode, r.Duration, r.Stderr)
		}
		if pids := alive(name); len(pids) > 0 {
			t.Errorf("%s: processes %v are left", kind, pids)
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// A process that holds the output open does not hold us, in whatever mode.
func TestOutputHeldOpen(t *testing.T) {
	for kind, s := range boxes(writer) {
		r := run(t, s, openDir(t), sh("sleep 1000 & echo done"))
		if r.ExitCode != 0 || string(r.Stdout) != "done\n" || r.Duration > time.Second {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

func TestForkBomb(t *testing.T) {
	for kind, s := range boxes(writer) {
		if kind == "danger" {
			continue
		}
		s.Limits.Processes = 40
		c := sh("b() { b | b & }; b; sleep 1000")
		c.Timeout = 500 * time.Millisecond
		r := run(t, s, openDir(t), c)
		if r.Duration > 3*time.Second {
			t.Errorf("%s: took %v", kind, r.Duration)
		}
		if os.Geteuid() == 0 {
			waitFor(t, func() bool { return processesOf(t, "65533") == 0 })
		}
	}
}

func processesOf(t *testing.T, user string) int {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	n := 0
	for _, f := range files {
		if b, _ := os.ReadFile(f); strings.Contains(string(b), "\nUid:\t"+user+"\t") && !strings.Contains(string(b), "State:\tZ") {
			n++
		}
	}
	return n
}

// gigabytes of output are counted, not kept.
func TestFloodOfOutput(t *testing.T) {
	const gigabytes = 10
	w := newWorld(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	r := w.inside(t, w.box(), sandbox.Command{}, "flood", fmt.Sprint(gigabytes<<10))
	runtime.ReadMemStats(&after)
	t.Logf("%d GiB in %v, allocated %d KiB", gigabytes, time.Since(begun), (after.TotalAlloc-before.TotalAlloc)>>10)
	if r.StdoutTotal != gigabytes<<30 || len(r.Stdout) != 1<<20 || !r.StdoutTruncated || r.ExitCode != 0 {
		t.Errorf("kept %d of %d, truncated %v, exit code %d", len(r.Stdout), r.StdoutTotal, r.StdoutTruncated, r.ExitCode)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func TestSetuid(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a program that is setuid root")
	}
	w := newWorld(t)
	program := filepath.Join(w.tools, "setuid")
	b, err := os.ReadFile(w.attacker())
	must(t, err)
	must(t, os.WriteFile(program, b, 0o755))
	must(t, os.Chmod(program, 0o755|os.ModeSetuid))
	outside := exec.Command(program, "attack", "isroot")
	outside.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	if err := outside.Run(); err != nil {
		t.Skipf("setuid does nothing here even outside: %v", err)
	}
	for kind, s := range boxes(w.box()) {
		if kind != "danger" {
			w.mustContain(t, s, sandbox.Command{}, escape{name: kind + " setuid", args: plain("exec", program, "attack", "isroot")})
		}
	}
}

// The process that waits for the command has its user id; it must not be open to it.
func TestOurChildIsClosed(t *testing.T) {
	for _, script := range []string{"ls /proc/1/fd", "cat /proc/1/environ", "cat /proc/1/mem", "ls /proc/1/root/", "cat /proc/1/maps"} {
		if r := run(t, writer, openDir(t), sh(script)); r.ExitCode == 0 || !strings.Contains(string(r.Stderr), "ermission denied") {
			t.Errorf("%s: %d %s %s", script, r.ExitCode, r.Stdout, r.Stderr)
		}
	}
	r := run(t, writer, openDir(t), sh("kill -9 1; kill -TERM 1; kill -QUIT 1; kill -USR1 1; kill -STOP 1; sleep 0.05; echo on"))
	if string(r.Stdout) != "on\n" || r.ExitCode != 0 {
		t.Errorf("the command stopped our child: %+v", r)
	}
	for kind, s := range boxes(writer) {
		if r := run(t, s, openDir(t), sh("kill -TERM 0; sleep 1")); r.Signal != "terminated" || r.ExitCode != 143 {
			t.Errorf("%s: a signal to its group: %+v", kind, r)
		}
	}
}

func TestSocketFamilies(t *testing.T) {
	w := newWorld(t)
	for _, family := range []int{unix.AF_VSOCK, unix.AF_ALG, unix.AF_PACKET, unix.AF_BLUETOOTH, unix.AF_TIPC} {
		w.mustContain(t, w.box(), sandbox.Command{Network: true}, escape{name: fmt.Sprint("family ", family), args: plain("family", fmt.Sprint(family))})
	}
	weak := boxes(w.box())["seccomp"]
	if r := w.inside(t, weak, sandbox.Command{}, "pair", fmt.Sprint(unix.SOCK_STREAM)); r.ExitCode != 0 {
		t.Errorf("a pair of streams: %d %s", r.ExitCode, r.Stderr)
	}
	w.mustContain(t, weak, sandbox.Command{}, escape{name: "a pair that can send anywhere", args: plain("pair", fmt.Sprint(unix.SOCK_DGRAM))})
}

func TestLoopback(t *testing.T) {
	w := newWorld(t)
	if err := w.outside("serve"); err != nil {
		t.Fatal(err)
	}
	for _, attack := range []string{"serve", "serve-udp"} {
		if r := w.inside(t, w.box(), sandbox.Command{Loopback: true}, attack); r.ExitCode != 0 {
			t.Errorf("a loopback of its own: %s: %d %s", attack, r.ExitCode, r.Stderr)
		}
		w.mustContain(t, w.box(), sandbox.Command{}, escape{name: "no loopback", args: plain(attack)})
	}
	for _, e := range escapes {
		if strings.Contains(e.name, "to the host") {
			w.mustContain(t, w.box(), sandbox.Command{Loopback: true}, e)
		}
	}
}

func TestDeniedCalls(t *testing.T) {
	w := newWorld(t)
	for kind, s := range boxes(w.box()) {
		for name, nr := range map[string]int{
			"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
			"keyctl": unix.SYS_KEYCTL, "add_key": unix.SYS_ADD_KEY, "bpf": unix.SYS_BPF, "userfaultfd": unix.SYS_USERFAULTFD,
			"perf_event_open": unix.SYS_PERF_EVENT_OPEN, "io_uring_setup": unix.SYS_IO_URING_SETUP, "pidfd_getfd": unix.SYS_PIDFD_GETFD,
			"kcmp": unix.SYS_KCMP, "mount": unix.SYS_MOUNT, "open_tree": unix.SYS_OPEN_TREE, "fsopen": unix.SYS_FSOPEN,
			"unshare": unix.SYS_UNSHARE, "setns": unix.SYS_SETNS, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
			"chroot": unix.SYS_CHROOT, "fanotify_init": unix.SYS_FANOTIFY_INIT,
		} {
			r := w.inside(t, s, sandbox.Command{}, "syscall", fmt.Sprint(nr))
			denied := r.ExitCode == contained && strings.Contains(string(r.Stderr), "not permitted")
			if kind != "danger" && !denied {
				t.Errorf("%s: %s is let through: %d %s", kind, name, r.ExitCode, r.Stderr)
			}
			if kind == "danger" && denied && os.Geteuid() == 0 {
				t.Logf("%s is denied even without a sandbox here", name)
			}
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 12 {
		dir := openDir(t)
		wg.Go(func() {
			r, err := writer.Run(context.Background(), dir, sh(fmt.Sprintf("echo %d; exit %d", i, i)))
			if missing := (*sandbox.UnavailableError)(nil); errors.As(err, &missing) {
				return
			}
			if err != nil || r.ExitCode != i || string(r.Stdout) != fmt.Sprintf("%d\n", i) {
				t.Errorf("%d: %v %+v", i, err, r)
			}
		})
	}
	wg.Wait()
}
