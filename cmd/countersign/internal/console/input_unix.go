//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package console

import (
	"bytes"
	"context"
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

// toForeground makes our process group the terminal's again, which a program in it may have changed, lets
// others open it, lets output go on that was stopped, and has us wait for it again.
func toForeground(terminal, output *os.File) {
	signal.Ignore(syscall.SIGTTOU) // which who is in the background gets for asking
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TIOCNXCL, 0)
	_ = unix.IoctlSetInt(int(terminal.Fd()), startOutput, startArg)
	_ = unix.SetNonblock(int(terminal.Fd()), false)
	_ = unix.SetNonblock(int(output.Fd()), false)
}

// setSize tells the kernel a terminal's size where it has another.
func setSize(terminal *os.File, columns, rows int) {
	is, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err == nil && columns > 0 && rows > 0 && (int(is.Col) != columns || int(is.Row) != rows) {
		_ = unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	}
}

// readAnswers takes what comes from a terminal up to an answer, for at most so long, and returns the last of it.
func readAnswers(terminal *os.File, last string, most time.Duration) string {
	var came []byte
	waiting, over := context.WithTimeout(context.Background(), most)
	defer over()
	for waiting.Err() == nil && !bytes.Contains(came, []byte(last)) {
		fds := []unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 20) // milliseconds
		if n == 0 || err == unix.EINTR {
			continue
		}
		part := make([]byte, 4096)
		if err == nil {
			n, err = unix.Read(int(terminal.Fd()), part)
		}
		if err != nil || n <= 0 {
			break
		}
		came = append(came[max(0, len(came)-len(part)):], part[:n]...)
	}
	before, _, _ := bytes.Cut(came, []byte(last))
	return string(before)
}
