//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package terminal

import (
	"os"

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
