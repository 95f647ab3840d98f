package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// An escape is one attack, made once in a sandbox and once outside of it.
type escape struct {
	name string
	args func(w *world) []string
	open bool // works in the weaker sandbox: the documented limit of it
	// tries: it is contained unless processes of another test are still dying.
	tries int
}

// waitForSleepers waits until the processes that fork starts are gone everywhere, or for ten seconds.
func waitForSleepers() {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		if !slices.ContainsFunc(stats, func(name string) bool {
			stat, err := os.ReadFile(name)
			return err == nil && bytes.Contains(stat, []byte("(sleep)"))
		}) {
			return
		}
	}
}

func at(attack, name string) func(w *world) []string {
	return func(w *world) []string { return []string{attack, w.at(name)} }
}

func onVictim(attack string) func(w *world) []string {
	return func(w *world) []string { return []string{attack, fmt.Sprint(w.victim.Process.Pid)} }
}

func plain(args ...string) func(w *world) []string {
	return func(*world) []string { return args }
}

// escapes are in an order in which none takes away what the next needs.
var escapes = []escape{
	{name: "write outside", args: at("write", "new")},
	{name: "append outside", args: at("append", "file")},
	{name: "read outside", args: at("read", "file")},
	{name: "read a key in the home", args: at("read", "home/.ssh/id_ed25519")},
	{name: "list outside", args: at("list", "home")},
	{name: "see that a file exists", args: at("see", "file"), open: true},
	{name: "read a file of the system's configuration", args: plain("list", "/etc")},
	{name: "write a git hook", args: at("write", "repo/.git/hooks/post-commit")},
	{name: "write a git configuration", args: at("append", "repo/.git/config")},
	{name: "write through a symbolic link", args: at("symlink", "file")},
	{name: "write through a hard link", args: at("hardlink", "file")},
	{name: "change a mode outside", args: at("chmod", "file"), open: true},
	{name: "change times outside", args: at("utimes", "file"), open: true},
	{name: "change an attribute outside", args: at("xattr", "file"), open: true},
	{name: "truncate outside", args: at("truncate", "repo/.git/config")},
	{name: "rename outside", args: at("rename", "repo/.git/config")},
	{name: "remove outside", args: at("remove", "home/.ssh/id_ed25519")},
	{name: "T24 the token from any environment", args: plain("environ")},
	{name: "T24 the token from the environment of the parent", args: func(w *world) []string {
		return []string{"read", fmt.Sprintf("/proc/%d/environ", w.victim.Process.Pid)}
	}},
	{name: "a file through the root of a process", args: func(w *world) []string {
		return []string{"procroot", fmt.Sprint(w.victim.Process.Pid), w.at("file")}
	}},
	{name: "an inherited descriptor", args: func(w *world) []string { return []string{"fd", fmt.Sprint(w.fd)} }},
	{name: "TCP to the host", args: func(w *world) []string { return []string{"dial", "tcp", w.tcp} }},
	{name: "UDP to the host", args: func(w *world) []string { return []string{"dial", "udp", w.udp} }},
	{name: "a socket on the disk", args: func(w *world) []string { return []string{"dial", "unix", w.unix} }},
	{name: "an abstract socket", args: func(w *world) []string { return []string{"dial", "unix", w.name} }},
	{name: "trace a process", args: onVictim("ptrace")},
	{name: "the memory of a process", args: onVictim("memory")},
	{name: "a user namespace", args: plain("userns")},
	{name: "a user namespace by clone", args: plain("clone")},
	{name: "a user namespace by clone3", args: plain("clone3")},
	{name: "a mount", args: plain("mount")},
	// Without namespaces the limit is on top of what the user runs already, which may be the dying processes
	// of another test: as many as these may then be started, until they are gone.
	{name: "processes without end", args: plain("fork", "500"), tries: 5},
	{name: "memory without end", args: plain("reserve", "64")},
	{name: "a file without end", args: plain("grow", "huge", "2")},
	{name: "kill a process", args: onVictim("kill")},
}

func TestEscapeOutside(t *testing.T) {
	w := newWorld(t)
	for _, e := range escapes {
		t.Run(e.name, func(t *testing.T) {
			err := w.outside(e.args(w)...)
			if err != nil && needsPrivilege(e.name) && os.Geteuid() != 0 {
				t.Skipf("not even outside without root here: %v", err)
			}
			if err != nil {
				t.Errorf("the attack does not work outside a sandbox, so it proves nothing inside: %v", err)
			}
		})
	}
}

// needsPrivilege are the attacks that a kernel may deny to normal users.
func needsPrivilege(name string) bool {
	return strings.Contains(name, "namespace") || strings.Contains(name, "mount") || strings.Contains(name, "trace")
}

func TestEscapeInside(t *testing.T) {
	w := newWorld(t)
	for _, e := range escapes {
		t.Run(e.name, func(t *testing.T) { w.mustContain(t, w.box(), sandbox.Command{}, e) })
	}
	w.mustBeWhole(t)
}

func TestEscapeFromSeccompAlone(t *testing.T) {
	w := newWorld(t)
	s := sandbox.WithoutNamespaces(w.box())
	s.AcceptSeccomp = true
	for _, e := range escapes {
		if !e.open {
			t.Run(e.name, func(t *testing.T) { w.mustContain(t, s, sandbox.Command{}, e) })
		}
	}
	w.mustBeWhole(t)
}

// With the network permitted, only the attacks over the network are let through.
func TestEscapeWithNetwork(t *testing.T) {
	w := newWorld(t)
	weak := sandbox.WithoutNamespaces(w.box())
	weak.AcceptSeccomp = true
	for name, s := range map[string]sandbox.Sandbox{"namespaces": w.box(), "seccomp": weak} {
		for _, e := range escapes {
			if strings.Contains(e.name, "to the host") {
				r := w.inside(t, s, sandbox.Command{Network: true}, e.args(w)...)
				if r.ExitCode != 0 {
					t.Errorf("%s: %s: exit code %d, %s", name, e.name, r.ExitCode, r.Stderr)
				}
			} else if strings.Contains(e.name, "socket") {
				w.mustContain(t, s, sandbox.Command{Network: true}, e)
			}
		}
	}
}

func (w *world) mustContain(t *testing.T, s sandbox.Sandbox, c sandbox.Command, e escape) {
	t.Helper()
	r := w.inside(t, s, c, e.args(w)...)
	for try := 1; r.ExitCode != contained && try < e.tries; try++ {
		waitForSleepers()
		r = w.inside(t, s, c, e.args(w)...)
	}
	if r.ExitCode != contained {
		t.Errorf("%s: not contained: exit code %d %s under %+v\n%s", e.name, r.ExitCode, r.Signal, r.Protection, r.Stderr)
	}
	t.Logf("contained by %+v: %s", r.Protection, strings.TrimSpace(string(r.Stderr)))
}

// mustBeWhole checks that nothing outside has changed, whatever the attacks said.
func (w *world) mustBeWhole(t *testing.T) {
	t.Helper()
	for _, f := range []string{"file", "home/.ssh/id_ed25519", "repo/.git/config"} {
		b, err := os.ReadFile(w.at(f))
		info, _ := os.Stat(w.at(f))
		if err != nil || string(b) != token || info.Mode() != 0o666 {
			t.Errorf("%s is %q with mode %v, %v", f, b, info.Mode(), err)
		}
	}
	for _, f := range []string{"new", "repo/.git/hooks/post-commit"} {
		if _, err := os.Lstat(w.at(f)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", f, err)
		}
	}
	if err := w.victim.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the victim: %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(w.dir, "*"))
	t.Log("left in the directory:", left)
}
