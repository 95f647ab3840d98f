package sandbox_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A world is what there is to attack. Its files are open to all users and its
// process has the user id of sandboxed commands, so that nothing but the sandbox
// is between it and them.
type world struct {
	dir    string // the working directory of commands
	out    string // outside of it
	tools  string // readable for commands: this test's executable
	victim *exec.Cmd
	tcp    string
	udp    string
	unix   string
	name   string // of the abstract socket
	fd     int    // an open descriptor without close-on-exec
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := os.MkdirTemp("", "world-")
	must(t, err)
	must(t, os.Chmod(base, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	w := &world{dir: filepath.Join(base, "dir"), out: filepath.Join(base, "out"), tools: filepath.Join(base, "tools")}
	for _, d := range []string{w.dir, w.out, w.tools, w.at("home/.ssh"), w.at("repo/.git/hooks")} {
		must(t, os.MkdirAll(d, 0o777))
		must(t, os.Chmod(d, 0o777))
	}
	for _, f := range []string{"file", "home/.ssh/id_ed25519", "repo/.git/config"} {
		must(t, os.WriteFile(w.at(f), []byte(token), 0o666))
		must(t, os.Chmod(w.at(f), 0o666))
	}
	program, err := os.ReadFile(executable)
	must(t, err)
	must(t, teststand.WriteFile(w.attacker(), program))
	w.listen(t)
	w.startVictim(t)
	w.openDescriptor(t)
	return w
}

func (w *world) at(name string) string { return filepath.Join(w.out, name) }

// attacker is the executable of the attacks.
func (w *world) attacker() string { return filepath.Join(w.tools, "attacker") }

// listen opens one socket of each kind, each answering.
func (w *world) listen(t *testing.T) {
	w.unix, w.name = w.at("socket"), fmt.Sprintf("@countersign-%d", os.Getpid())
	for network, address := range map[string]*string{"tcp": &w.tcp, "unix": &w.unix, "unix ": &w.name} {
		at := *address
		if network == "tcp" {
			at = "127.0.0.1:0"
		}
		l, err := net.Listen(strings.TrimSpace(network), at)
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		*address = l.Addr().String()
		go answer(l)
	}
	must(t, os.Chmod(w.unix, 0o777))
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	w.udp = p.LocalAddr().String()
	go echo(p)
}

// startVictim starts a process that has the token in its environment.
func (w *world) startVictim(t *testing.T) {
	w.victim = exec.Command(w.attacker(), "attack", "sleep")
	w.victim.Env = []string{"GITHUB_TOKEN=" + token}
	if os.Geteuid() == 0 {
		w.victim.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	}
	must(t, w.victim.Start())
	t.Cleanup(func() { _ = w.victim.Process.Kill(); _ = w.victim.Wait() })
}

func (w *world) openDescriptor(t *testing.T) {
	f, err := os.Open(w.at("file"))
	must(t, err)
	defer f.Close()
	w.fd = 177
	must(t, unix.Dup3(int(f.Fd()), w.fd, 0))
	t.Cleanup(func() { _ = unix.Close(w.fd) })
}

// box is a sandbox in which the attacks can be run.
func (w *world) box() sandbox.Sandbox {
	return sandbox.Sandbox{Mode: sandbox.WorkspaceWrite, Read: []string{w.tools}, Self: executable, Limits: sandbox.Limits{Processes: 100}}
}

// inside runs an attack in a sandbox.
func (w *world) inside(t *testing.T, s sandbox.Sandbox, c sandbox.Command, args ...string) sandbox.Result {
	t.Helper()
	c.Argv = append([]string{w.attacker(), "attack"}, args...)
	return run(t, s, w.dir, c)
}

// outside runs an attack as any process of ours runs.
func (w *world) outside(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.attacker(), append([]string{"attack"}, args...)...)
	cmd.Dir = w.dir
	return cmd.Run()
}

// run is Run for a command that must be started, or the test skipped where the
// kernel lacks what it takes.
func run(t *testing.T, s sandbox.Sandbox, dir string, c sandbox.Command) sandbox.Result {
	t.Helper()
	r, err := s.Run(context.Background(), dir, c)
	if missing, ok := err.(*sandbox.UnavailableError); ok {
		t.Skipf("this kernel lacks %v: %v (%s)", missing.Missing, missing.Err, missing.Try)
	}
	must(t, err)
	return r
}

// must ends a test that has an error.
var must = teststand.Fatal

// openDir is a temporary directory that every user can reach.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "open-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
