package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Child must be the first call of main, and of TestMain. In a process that Run
// started it builds the sandbox, runs the command and never returns; in any other
// it returns at once.
func Child() {
	if len(os.Args) != 1 || os.Args[0] != marker || !isPipe(settingsFD) || !isPipe(reportsFD) {
		return
	}
	runtime.LockOSThread()
	supervised()
	os.Exit(0)
}

func isPipe(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// supervised is the life of the child.
func supervised() {
	wire := os.NewFile(settingsFD, "settings")
	reports := json.NewEncoder(os.NewFile(reportsFD, "reports"))
	var s settings
	if json.NewDecoder(wire).Decode(&s) != nil {
		return // the parent is gone
	}
	go func() {
		_, _ = io.Copy(io.Discard, wire)
		_ = syscall.Kill(0, syscall.SIGKILL) // the parent is gone: end with all that was started
		os.Exit(1)
	}()
	if r := s.build(); r != nil {
		_ = reports.Encode(r)
		return
	}
	_ = reports.Encode(report{})
	_ = reports.Encode(s.command())
}

// build makes every wall, in the order in which each leaves the right to make the next.
func (s *settings) build() *report {
	steps := []struct {
		protection string
		make       func() error
	}{
		{userNamespaces, s.makeRoot},
		{userNamespaces, s.raiseLoopback},
		{resourceLimits, s.setLimits},
		{landlockFiles, s.restrictFiles},
		{noPrivileges, s.dropPrivileges},
		{systemCalls, s.restrictCalls},
	}
	for _, step := range steps {
		if err := step.make(); err != nil {
			r := &report{Missing: step.protection, Error: err.Error()}
			var call *os.SyscallError
			if errors.As(err, &call) {
				r.Error = call.Syscall
				errors.As(call.Err, &r.Errno)
			}
			return r
		}
	}
	return nil
}

func (s *settings) restrictCalls() error {
	if !s.Walls {
		return nil
	}
	return os.NewSyscallError("seccomp", install(filter(s.Namespaces, s.Network)))
}

// raiseLoopback gives a network namespace its loopback.
func (s *settings) raiseLoopback() error {
	if !s.Namespaces || s.Network || !s.Loopback {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return os.NewSyscallError("raising loopback", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}
