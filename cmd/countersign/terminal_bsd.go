//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package main

import "golang.org/x/sys/unix"

const (
	readTerminal  = unix.TIOCGETA
	flushTerminal = unix.TIOCSETAF
)
