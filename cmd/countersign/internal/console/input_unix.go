//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
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

// Quiet waits until no key was pressed for longer than it takes until one that is held down repeats, so that it answers nothing
// else, and reports whether Key can read one here.
func Quiet(terminal *os.File) bool {
	const pause = 700 // milliseconds: X has 660, most others less
	_, err := keys(terminal, pause)
	for ; err == nil; _, err = keys(terminal, pause) {
	}
	return err == errQuiet
}

// Key reads one key as it is pressed, and shows it not. What comes at once, as what is pasted, is one that means nothing. The end of the
// input is io.EOF.
func Key(terminal *os.File) (string, error) {
	key, err := keys(terminal, -1)
	if key == "\x04" || key == "" {
		return "", cmp.Or(err, io.EOF)
	}
	return key, err
}

var errQuiet = errors.New("no key was pressed")

// keys are those that are pressed within so many milliseconds, -1 for ever. Ctrl-C among them ends this program as ever.
func keys(terminal *os.File, within int) (string, error) {
	was, err := term.MakeRaw(int(terminal.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(terminal.Fd()), was) }()
	fds := []unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, within)
	for err == unix.EINTR {
		n, err = unix.Poll(fds, within)
	}
	if n == 0 && err == nil {
		err = errQuiet
	}
	if err != nil {
		return "", err
	}
	part := make([]byte, 4096)
	n, err = unix.Read(int(terminal.Fd()), part)
	if part = part[:max(n, 0)]; bytes.IndexByte(part, 3) >= 0 {
		return "", cmp.Or(unix.Kill(unix.Getpid(), unix.SIGINT), io.EOF)
	}
	return string(part), err
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
