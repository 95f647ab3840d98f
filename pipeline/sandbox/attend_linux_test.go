package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// attend runs an attended command, with what it prints in a file, or skips the test where the
// kernel lacks what it takes.
func attend(t *testing.T, s sandbox.Sandbox, dir string, c sandbox.Command) (sandbox.Result, string) {
	t.Helper()
	in, err := os.Open(os.DevNull)
	must(t, err)
	defer in.Close()
	out, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	defer out.Close()
	r, err := s.Attend(context.Background(), dir, c, [3]*os.File{in, out, out})
	if missing := (*sandbox.UnavailableError)(nil); errors.As(err, &missing) {
		t.Skipf("this kernel lacks %v: %v (%s)", missing.Missing, missing.Err, missing.Try)
	}
	must(t, err)
	said, err := os.ReadFile(out.Name())
	must(t, err)
	return r, string(said)
}

// Every escape that a captured command does not get away with, an attended one does not either.
func TestAttendContains(t *testing.T) {
	w := newWorld(t)
	s := w.box()
	self := os.Getpid()
	for _, args := range [][]string{
		{"write", w.at("file")}, {"append", w.at("file")}, {"truncate", w.at("file")}, {"remove", w.at("file")}, {"rename", w.at("file")},
		{"chmod", w.at("file")}, {"read", w.at("home/.ssh/id_ed25519")}, {"read", w.at("repo/.git/config")}, {"append", w.at("repo/.git/config")},
		{"write", w.at("repo/.git/hooks/post-commit")}, {"list", w.at("home")}, {"append", filepath.Join(w.dir, "../out/file")},
		{"symlink", w.at("file")}, {"hardlink", w.at("file")}, {"procroot", "1", w.at("file")}, {"procroot", strconv.Itoa(self), w.at("file")},
		{"kill", strconv.Itoa(self)}, {"kill", strconv.Itoa(w.victim.Process.Pid)}, {"ptrace", strconv.Itoa(self)}, {"memory", strconv.Itoa(w.victim.Process.Pid)}, {"environ"},
		{"dial", "unix", w.unix}, {"dial", "unix", w.name}, {"fd", strconv.Itoa(w.fd)}, {"userns"}, {"mount"}, {"mounts"}, {"clone3"}, {"write", "/etc/passwd"},
		{"write", filepath.Join(w.tools, "attacker")}, {"write", "/usr/bin/owned"},
		{"ioctl", strconv.Itoa(unix.TIOCSTI)}, {"ioctl", strconv.Itoa(unix.TIOCSETD)}, {"ioctl", strconv.Itoa(0x4b72)}, {"ioctl", strconv.Itoa(0x56ff)}, // KDFONTOP
	} {
		for _, network := range []bool{false, true} {
			if network && os.Getenv("COUNTERSIGN_LONG") == "" {
				continue
			}
			r, said := attend(t, s, w.dir, sandbox.Command{Network: network, Argv: append([]string{w.attacker(), "attack"}, args...)})
			if r.ExitCode != contained {
				t.Errorf("%v (network %v): exit %d: %s", args, network, r.ExitCode, said)
			}
		}
	}
	for _, harmless := range []int{0x4aff, 0x4c00, 0x55ff, 0x5700, unix.TIOCGWINSZ} {
		if r, said := attend(t, s, w.dir, sandbox.Command{Argv: []string{w.attacker(), "attack", "ioctl", strconv.Itoa(harmless)}}); r.ExitCode != 0 {
			t.Errorf("ioctl %#x: %s", harmless, said)
		}
	}
	if r, _ := attend(t, s, w.dir, sandbox.Command{Argv: []string{w.attacker(), "attack", "dial", "tcp", w.tcp}}); r.ExitCode != contained {
		t.Error("it reached the network")
	}
}

// A signal to its process group, which is ours as well, does not come out.
func TestAttendSignalsItsGroup(t *testing.T) {
	r, said := attend(t, writer, openDir(t), sh("trap '' TERM; kill -TERM 0; kill -KILL -1; echo on"))
	if r.ExitCode != 0 && r.Signal != "killed" || strings.Contains(said, "not permitted") && !strings.Contains(said, "on") {
		t.Errorf("%+v %s", r, said)
	}
}

// It has its exit code, signals, streams, our user id and group, and no limit on memory; what it leaves is ended.
func TestAttendLets(t *testing.T) {
	dir := openDir(t)
	for script, want := range map[string]string{
		"exit 7": "7 ", "kill -9 $$": "137 ", "id -u; ulimit -v; ulimit -c": "0 " + strconv.Itoa(os.Geteuid()) + "\nunlimited\n0\n",
		"echo $HOME; touch $HOME/x $TMPDIR/y z && echo made": "0 /tmp/home\nmade\n", "ls /dev/pts/ptmx": "0 /dev/pts/ptmx\n",
		"sleep 1000 & echo left": "0 left\n",
	} {
		r, said := attend(t, writer, dir, sh(script))
		if got := strconv.Itoa(r.ExitCode) + " " + said; got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	r, _ := attend(t, writer, dir, sh("true"))
	if r.Protection.Landlock < 6 || !r.Protection.Seccomp || len(r.Protection.Namespaces) != 6 {
		t.Errorf("%+v", r.Protection)
	}
	var st syscall.Stat_t
	must(t, syscall.Stat(filepath.Join(dir, "z"), &st))
	if int(st.Uid) != os.Geteuid() {
		t.Errorf("its files are of user %d", st.Uid)
	}
}

// Binds are seen below its home: some can be written, the others cannot be changed or taken away.
func TestAttendBinds(t *testing.T) {
	from := openDir(t)
	for _, name := range []string{"writes/file", "reads/file", "one", "home/copied"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(from, name), []byte("as it was\n"), 0o644))
	}
	s := writer
	s.Binds = []sandbox.Bind{
		{Source: from + "/home", Target: "/tmp/home", Write: true}, {Source: from + "/writes", Target: "/tmp/home/.a/writes", Write: true},
		{Source: from + "/reads", Target: "/tmp/home/.a/reads"}, {Source: from + "/one", Target: "/tmp/home/one"}, {Source: from + "/none", Target: "/tmp/home/none"},
	}
	_, said := attend(t, s, openDir(t), sh(`cd; cat copied .a/reads/file one
echo new >.a/writes/file; echo new >copied; { echo new >.a/reads/file; echo new >>one; rm -rf .a one; mv .a .b; ls none; } 2>/dev/null`))
	if want := strings.Repeat("as it was\n", 3); said != want {
		t.Errorf("%q", said)
	}
	for name, want := range map[string]string{"reads/file": "as it was\n", "one": "as it was\n", "home/copied": "new\n"} {
		if got, _ := os.ReadFile(filepath.Join(from, name)); string(got) != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, bad := range []sandbox.Bind{{Source: "/etc", Target: "/etc"}, {Source: "etc", Target: "/tmp/x"}, {Source: "/etc", Target: "/tmp/../etc"}, {Source: "/etc", Target: "/lent/x"}, {Source: "/etc", Target: "/lent", Write: true}} {
		s.Binds = []sandbox.Bind{bad}
		if _, err := s.Attend(context.Background(), openDir(t), sh("true"), [3]*os.File{}); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// What is lent takes files and directories, and no link, pipe or socket that would have somebody outside write elsewhere later.
func TestAttendLent(t *testing.T) {
	from := openDir(t)
	must(t, os.WriteFile(filepath.Join(from, "file"), []byte("as it was\n"), 0o644))
	s := writer
	s.Binds = []sandbox.Bind{{Source: from, Target: sandbox.Lent + "/a/dir", Write: true}, {Source: from + "/none", Target: sandbox.Lent + "/none", Write: true}}
	r, said := attend(t, s, openDir(t), sh(`set -e; cd /lent/a/dir; mkdir d e; echo new >d/x; mv d/x e/new; echo more >>file; rmdir d
ln -s /etc/passwd /tmp/link
for try in "ln -s /etc/passwd link" "mkfifo pipe" "mv /tmp/link ." "cp -a /tmp/link ."; do if $try 2>/dev/null; then echo "$try"; fi; done`))
	entries, err := os.ReadDir(from)
	must(t, err)
	if r.ExitCode != 0 || said != "" || len(entries) != 2 {
		t.Errorf("%+v: %q, %v", r, said, entries)
	}
	for name, want := range map[string]string{"file": "as it was\nmore\n", "e/new": "new\n"} {
		if got, _ := os.ReadFile(filepath.Join(from, name)); string(got) != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Where namespaces are denied it is refused, whatever is accepted for others.
func TestAttendRefuses(t *testing.T) {
	for _, s := range []sandbox.Sandbox{
		sandbox.WithoutNamespaces(sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, AcceptSeccomp: true}), {Mode: sandbox.DangerFullAccess}, {Mode: sandbox.ReadOnly},
	} {
		dir := openDir(t)
		if _, err := s.Attend(context.Background(), dir, sh("touch ran"), [3]*os.File{os.Stdin, os.Stderr, os.Stderr}); err == nil {
			t.Errorf("%+v ran", s)
		}
		if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
			t.Errorf("%+v ran it", s)
		}
	}
}
