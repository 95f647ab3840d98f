//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package console

import "golang.org/x/sys/unix"

const (
	readTerminal  = unix.TIOCGETA
	flushTerminal = unix.TIOCSETAF
	startOutput   = unix.TIOCSTART
	startArg      = 0
)
