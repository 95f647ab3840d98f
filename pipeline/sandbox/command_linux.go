package sandbox

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

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
		Sys: &syscall.SysProcAttr{Setsid: s.Namespaces, Pdeathsig: syscall.SIGKILL},
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
