package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// On a kernel that really denies user namespaces the command is refused, with a
// hint, and nothing is run.
func TestNamespacesDenied(t *testing.T) {
	cmd := exec.Command(executable, "attack", "denied")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("this kernel denies user namespaces already: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// denied runs as the root of a user namespace that may not have others in it.
func denied([]string) error {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "denied-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := sandbox.Sandbox{Mode: sandbox.WorkspaceWrite}
	_, err = s.Run(context.Background(), dir, sh("touch executed"))
	var missing *sandbox.UnavailableError
	if !errors.As(err, &missing) || !slices.Equal(missing.Missing, []string{"user namespaces"}) ||
		!strings.Contains(missing.Try, "sysctl -w user.max_user_namespaces") || !errors.Is(err, syscall.ENOSPC) {
		return errors.New("not refused: " + err.Error())
	}
	if _, err := os.Stat(filepath.Join(dir, "executed")); err == nil {
		return errors.New("refused, but executed")
	}
	return nil
}

func init() { attacks["denied"] = denied }

// A child of ours that finds a wall missing says so, and does not run the command.
func TestWallMissing(t *testing.T) {
	dir := openDir(t)
	s := sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, Self: "/bin/true"}
	if r, err := s.Run(context.Background(), dir, sh("touch executed")); err == nil {
		t.Errorf("a program that is not ours: %+v", r)
	}
	s.Self = "/no/such/program"
	if r, err := s.Run(context.Background(), dir, sh("touch executed")); err == nil {
		t.Errorf("no program: %+v", r)
	}
}

func TestReadOnlyRefuses(t *testing.T) {
	dir := openDir(t)
	if _, err := (sandbox.Sandbox{Mode: sandbox.ReadOnly}).Run(context.Background(), dir, sh("touch executed")); !errors.Is(err, sandbox.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	for _, m := range []sandbox.Mode{"", "none", "Workspace-Write"} {
		if _, err := (sandbox.Sandbox{Mode: m}).Run(context.Background(), dir, sh("touch executed")); err == nil {
			t.Errorf("mode %q is let through", m)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "executed")); err == nil {
		t.Error("executed")
	}
}

func TestBadCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	true1 := sandbox.Command{Argv: []string{"true"}}
	for _, c := range []struct {
		name    string
		sandbox sandbox.Sandbox
		dir     string
		command sandbox.Command
	}{
		{"no argv", writer, t.TempDir(), sandbox.Command{}},
		{"an empty program", writer, t.TempDir(), sandbox.Command{Argv: []string{""}}},
		{"a NUL byte", writer, t.TempDir(), sandbox.Command{Argv: []string{"true", "a\x00b"}}},
		{"no directory", writer, filepath.Join(t.TempDir(), "no"), true1},
		{"a file", writer, file, true1},
		{"the root", writer, "/", true1},
		{"the system's", writer, "/usr", true1},
		{"everybody's", writer, "/tmp", true1},
		{"a variable of our own", writer, t.TempDir(), sandbox.Command{Argv: []string{"true"}, Env: []string{"PATH"}}},
		{"a variable and its value", writer, t.TempDir(), sandbox.Command{Argv: []string{"true"}, Env: []string{"A=b"}}},
		{"reading everything", sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, Read: []string{"/"}}, t.TempDir(), true1},
		{"reading /proc", sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, Read: []string{"/proc/1"}}, t.TempDir(), true1},
		{"reading a relative directory", sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, Read: []string{"a"}}, t.TempDir(), true1},
	} {
		var missing *sandbox.UnavailableError
		if r, err := c.sandbox.Run(context.Background(), c.dir, c.command); err == nil || errors.As(err, &missing) {
			t.Errorf("%s: %v, %+v", c.name, err, r)
		}
	}
}

// A file of the directory that is also one outside could be written through.
func TestHardLinkToOutside(t *testing.T) {
	dir, outside := openDir(t), filepath.Join(openDir(t), "file")
	must(t, os.WriteFile(outside, []byte("x"), 0o666))
	must(t, os.WriteFile(filepath.Join(dir, "one"), []byte("x"), 0o666))
	must(t, os.Link(filepath.Join(dir, "one"), filepath.Join(dir, "two")))
	if r := run(t, writer, dir, sh("cat one two && ln one three")); r.ExitCode != 0 {
		t.Errorf("links within the directory: %+v", r)
	}
	must(t, os.Link(outside, filepath.Join(dir, "link")))
	if r, err := writer.Run(context.Background(), dir, sh("echo owned >link")); err == nil || !strings.Contains(err.Error(), "link has a hard link outside") {
		t.Errorf("%v %+v", err, r)
	}
	info, err := os.Stat(outside)
	must(t, err)
	if info.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) || info.Size() != 1 {
		t.Error("the outside file has changed")
	}
}

// A link of the tree is given away as a link; what it points to is not.
func TestLinksAreNotFollowed(t *testing.T) {
	dir, outside := openDir(t), openDir(t)
	must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	run(t, writer, dir, sh("true"))
	info, err := os.Stat(outside)
	must(t, err)
	if info.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
		t.Error("the directory outside has been given away")
	}
}

func TestScratchIsRemoved(t *testing.T) {
	for kind, s := range boxes(writer) {
		s.Scratch = openDir(t)
		must(t, os.Chmod(s.Scratch, 0o755))
		r := run(t, s, openDir(t), sh("mkdir -p $TMPDIR/a/b $HOME/c && echo x >$TMPDIR/a/b/file && chmod 0 $TMPDIR/a/b $TMPDIR/a $HOME"))
		left, err := os.ReadDir(s.Scratch)
		if r.ExitCode != 0 || err != nil || len(left) > 0 {
			t.Errorf("%s: %d %s: left %v, %v", kind, r.ExitCode, r.Stderr, left, err)
		}
	}
}

// When we are killed, so is the command.
func TestOurOwnDeath(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []string{"namespaces", "seccomp"} {
		name := fmt.Sprintf("orphan-of-%s-%d", mode, os.Getpid())
		cmd := exec.Command(w.attacker(), "attack", "host", mode, w.tools, w.dir, name)
		must(t, cmd.Start())
		waitFor(t, func() bool { return len(alive(name)) > 1 })
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		waitFor(t, func() bool { return len(alive(name)) == 0 })
	}
}

// host runs a command that sleeps, and waits to be killed.
func host(a []string) error {
	s := boxes(sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, Read: []string{a[1]}})[a[0]]
	_, err := s.Run(context.Background(), a[2], sandbox.Command{Argv: []string{filepath.Join(a[1], "attacker"), "attack", "sleep", a[3]}})
	return err
}

func init() { attacks["host"] = host }

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come about in ", soon)
		}
	}
}

// Neither the name nor descriptors alone make a process the child.
func TestChildNeedsItsPipes(t *testing.T) {
	cmd := &exec.Cmd{Path: executable, Args: []string{"countersign-sandbox-child"}, Env: []string{"ONLY_START=1"}}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "started" {
		t.Errorf("%v %q", err, out)
	}
}

// A program that was started as the child, and has not called Child, starts no other: it would be without end.
func TestChildStartsNoChild(t *testing.T) {
	was := os.Args[0]
	defer func() {
		os.Args[0] = was
		if recover() == nil {
			t.Error("it started")
		}
	}()
	os.Args[0] = "countersign-sandbox-child"
	_, _ = writer.Run(t.Context(), t.TempDir(), sh("true"))
}

// As a normal user all of it holds as well. COUNTERSIGN_LONG is for what takes long, too.
func TestAsNormalUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("these tests run as a normal user already")
	}
	w := newWorld(t)
	tests := "TestEscapeInside|TestProtection|TestNothing|TestLoopback|TestScratch|TestNamespacesDenied|TestT24"
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		tests += "|TestEscape|TestResults|TestForkBomb|TestHardLink|TestOurOwnDeath|TestTimeLimit"
	}
	cmd := exec.Command(w.attacker(), "-test.v", "-test.run=^("+tests+")")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	cmd.Dir, cmd.Env = w.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "SKIP") || strings.Contains(line, "in force") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
