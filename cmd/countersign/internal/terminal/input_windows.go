package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// EmptyInput drops what was typed into a console so far.
func EmptyInput(console *os.File) error {
	return windows.FlushConsoleInputBuffer(windows.Handle(console.Fd()))
}
