//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package terminal

import (
	"bytes"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// EmptyInput drops what was typed into a terminal so far, once all that was
// written to it has been shown (tcsetattr with TCSAFLUSH, which changes nothing
// else).
func EmptyInput(terminal *os.File) error {
	settings, err := unix.IoctlGetTermios(int(terminal.Fd()), readTerminal)
	if err != nil {
		return err
	}
	return unix.IoctlSetTermios(int(terminal.Fd()), flushTerminal, settings)
}

// toForeground makes our process group the terminal's again, which a program in it may have changed, and lets
// others open it.
func toForeground(terminal *os.File) {
	signal.Ignore(syscall.SIGTTOU) // which who is in the background gets for asking
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TIOCNXCL, 0)
}

// readAnswers throws away what comes from a terminal up to an answer, for at most so long.
func readAnswers(terminal *os.File, last string, most time.Duration) {
	var came []byte
	for until := time.Now().Add(most); time.Now().Before(until) && !bytes.Contains(came, []byte(last)); {
		fds := []unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(time.Until(until).Milliseconds())+1)
		if err == unix.EINTR {
			continue
		}
		part := make([]byte, 4096)
		if err == nil && n > 0 {
			n, err = unix.Read(int(terminal.Fd()), part)
		}
		if err != nil || n <= 0 {
			return
		}
		came = append(came[max(0, len(came)-len(last)):], part[:n]...)
	}
}
