package console

import "golang.org/x/sys/unix"

const (
	readTerminal  = unix.TCGETS
	flushTerminal = unix.TCSETSF
	startOutput   = unix.TCXONC
	startArg      = unix.TCOON
)
