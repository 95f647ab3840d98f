package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The attacks are run by this test's own executable, in a sandbox and outside of
// one: "attack NAME ARGUMENT…". An attack that works gives nil and exit code 0;
// one that is contained gives its error and exit code 9.

const contained = 9

// token is the secret the attacks are after.
const token = "ghs_0123456789abcdefTOKEN"

func init() { attack = runAttack }

func runAttack(args []string) bool {
	if len(args) < 2 || args[0] != "attack" {
		return false
	}
	if err := attacks[args[1]](args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(contained)
	}
	return true
}

var attacks = map[string]func(args []string) error{
	"write":     func(a []string) error { return os.WriteFile(a[0], []byte("owned"), 0o755) },
	"append":    func(a []string) error { return appendTo(a[0]) },
	"read":      func(a []string) error { return findToken(a[0]) },
	"truncate":  func(a []string) error { return os.Truncate(a[0], 0) },
	"remove":    func(a []string) error { return os.Remove(a[0]) },
	"rename":    func(a []string) error { return os.Rename(a[0], a[0]+".gone") },
	"chmod":     func(a []string) error { return os.Chmod(a[0], 0o4777) },
	"utimes":    func(a []string) error { return os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)) },
	"xattr":     func(a []string) error { return unix.Setxattr(a[0], "user.owned", []byte("1"), 0) },
	"list":      func(a []string) error { _, err := os.ReadDir(a[0]); return err },
	"see":       func(a []string) error { _, err := os.Lstat(a[0]); return err },
	"environ":   func([]string) error { return readEnvirons() },
	"dial":      func(a []string) error { return dial(a[0], a[1]) },
	"serve":     func([]string) error { return serve() },
	"serve-udp": func([]string) error { return serveUDP() },
	"kill":      func(a []string) error { return syscall.Kill(number(a[0]), syscall.SIGKILL) },
	"pairof": func(a []string) error {
		_, err := unix.Socketpair(number(a[0]), unix.SOCK_STREAM, 0)
		return err
	},
	"ioctl": func(a []string) error {
		if err := unix.IoctlSetInt(0, uint(number(a[0])), 0); err == unix.EPERM {
			return err
		}
		return nil
	},
	"ptrace":   func(a []string) error { return ptrace(number(a[0])) },
	"memory":   func(a []string) error { return readMemory(number(a[0])) },
	"procroot": func(a []string) error { return findToken(filepath.Join("/proc", a[0], "root", a[1])) },
	"symlink":  func(a []string) error { return through(os.Symlink, a[0]) },
	"hardlink": func(a []string) error { return through(os.Link, a[0]) },
	"fd":       func(a []string) error { return readDescriptor(number(a[0])) },
	"exec":     func(a []string) error { return exec.Command(a[0], a[1:]...).Run() },
	"isroot":   func([]string) error { return isRoot() },
	"userns":   func([]string) error { return inNamespace("nothing", syscall.CLONE_NEWUSER) },
	"mount":    func([]string) error { return inNamespace("mounts", syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS) },
	"mounts":   func([]string) error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") },
	"clone":    func([]string) error { return cloneRaw(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0) },
	"clone3":   func([]string) error { return clone3() },
	"nothing":  func([]string) error { return nil },
	"sleep":    func([]string) error { time.Sleep(time.Hour); return nil },
	"leave":    func(a []string) error { return leaveBehind(a[0]) },
	"left":     func([]string) error { return leaveOne() },
	"fork":     func(a []string) error { return fork(number(a[0])) },
	"flood":    func(a []string) error { return flood(number(a[0])) },
	"reserve":  func(a []string) error { return reserve(number(a[0])) },
	"grow":     func(a []string) error { return grow(a[0], number(a[1])) },
	"syscall":  func(a []string) error { return rawCall(number(a[0])) },
	"family":   func(a []string) error { return family(number(a[0])) },
	"pair": func(a []string) error {
		_, err := unix.Socketpair(unix.AF_UNIX, number(a[0])|unix.SOCK_CLOEXEC, 0)
		return err
	},
	"environment": func([]string) error { fmt.Print(strings.Join(os.Environ(), "\n")); return nil },
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("owned")
	return err
}

func findToken(path string) error {
	b, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(b, []byte(token)) {
		return errors.New("no token in " + path)
	}
	return err
}

func readEnvirons() error {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if findToken(f) == nil {
			return nil
		}
	}
	return fmt.Errorf("no token in %d processes", len(files))
}

func ptrace(pid int) error {
	if err := syscall.PtraceAttach(pid); err != nil {
		return err
	}
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	return syscall.PtraceDetach(pid)
}

func readMemory(pid int) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	return f.Close()
}

// through makes a link in the working directory and writes through it.
func through(link func(old, new string) error, target string) error {
	_ = os.Remove("link")
	if err := link(target, "link"); err != nil {
		return err
	}
	return appendTo("link")
}

func readDescriptor(fd int) error {
	b := make([]byte, 100)
	n, err := unix.Pread(fd, b, 0)
	if err == nil && !bytes.Contains(b[:n], []byte(token)) {
		err = errors.New("another file")
	}
	return err
}

func isRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("user id %d", os.Geteuid())
	}
	return nil
}
