package sandbox_test

import (
	"fmt"
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

func TestSetuid(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a program that is setuid root")
	}
	w := newWorld(t)
	program := filepath.Join(w.tools, "setuid")
	b, err := os.ReadFile(w.attacker())
	must(t, err)
	must(t, teststand.WriteFile(program, b))
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
	for kind, s := range boxes(w.box()) {
		if s.Mode == sandbox.DangerFullAccess {
			continue
		}
		for _, family := range []int{unix.AF_VSOCK, unix.AF_TIPC, unix.AF_RDS} {
			// The kernel is not even asked whether it has a module for the family.
			if r := w.inside(t, s, sandbox.Command{}, "pairof", fmt.Sprint(family)); r.ExitCode == 0 || !strings.Contains(string(r.Stderr), "permission denied") {
				t.Errorf("%s: a pair of family %d: %d %s", kind, family, r.ExitCode, r.Stderr)
			}
		}
	}
	if r := w.inside(t, weak, sandbox.Command{}, "pair", fmt.Sprint(unix.SOCK_STREAM)); r.ExitCode != 0 {
		t.Errorf("a pair of streams: %d %s", r.ExitCode, r.Stderr)
	}
	w.mustContain(t, weak, sandbox.Command{}, escape{name: "a pair that can send anywhere", args: plain("pair", fmt.Sprint(unix.SOCK_DGRAM))})
}

func TestLoopback(t *testing.T) {
	w := newWorld(t)
	must(t, w.outside("serve"))
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
		if kind == "danger" && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
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

// TestNotUTF8: settings that would reach the child as other names are refused.
func TestNotUTF8(t *testing.T) {
	dir := filepath.Join(openDir(t), "x\xff")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Skip(err)
	}
	if _, err := writer.Run(t.Context(), dir, sh("true")); err == nil {
		t.Error("a directory whose name is not UTF-8 was taken")
	}
	if _, err := writer.Run(t.Context(), openDir(t), sandbox.Command{Argv: []string{"echo", "a\xffb"}}); err == nil {
		t.Error("an argument that is not UTF-8 was taken")
	}
}
