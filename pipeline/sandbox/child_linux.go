package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
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
		if !s.Attended { // whose group is also that of others; with us its namespace ends
			_ = syscall.Kill(0, syscall.SIGKILL) // the parent is gone: end with all that was started
		}
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

// command starts the command and waits for its end.
func (s *settings) command() report {
	// The command may signal its whole group, and us with it. All signals would
	// cost half a millisecond; one of the others ends the command, no more.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGABRT)
	path, err := lookPath(s.Argv[0], s.Path, s.Dir)
	if err != nil {
		return ended(notStarted(os.Stderr, s.Argv[0], err))
	}
	// Descriptors that our parent inherited stop here.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return report{Missing: noPrivileges, Error: "close_range", Errno: err.(syscall.Errno)}
	}
	pid, err := syscall.ForkExec(path, s.Argv, &syscall.ProcAttr{
		Dir: s.Dir, Env: s.Env, Files: []uintptr{0, 1, 2},
		// Without namespaces the command stays in our group, which is how it is killed.
		Sys: &syscall.SysProcAttr{Setsid: s.Namespaces && !s.Attended, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return ended(notStarted(os.Stderr, s.Argv[0], err))
	}
	return ended(endingOfStatus(await(pid)))
}

// await reaps whatever ends, as the first process of a namespace must, until pid does.
func await(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		if got == pid {
			return status
		}
		if err != nil && err != syscall.EINTR {
			panic("sandbox: waiting for the command: " + err.Error())
		}
	}
}

func ended(e ending) report { return report{Ended: true, Exit: e.exit, Signal: e.signal} }
