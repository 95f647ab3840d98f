package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// emptyInput drops what was typed into a console so far.
func emptyInput(console *os.File) error {
	return windows.FlushConsoleInputBuffer(windows.Handle(console.Fd()))
}
