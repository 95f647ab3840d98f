package console

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// EmptyInput drops what was typed into a console so far.
func EmptyInput(console *os.File) error {
	return windows.FlushConsoleInputBuffer(windows.Handle(console.Fd()))
}

func toForeground(_, _ *os.File) {}

// setSize does nothing: a console tells its own size.
func setSize(_ *os.File, _, _ int) {}

// readAnswers throws away what the console has.
func readAnswers(console *os.File, _ string, _ time.Duration) string {
	_ = EmptyInput(console)
	return ""
}

// Quiet reports that no single key is read here.
func Quiet(*os.File) bool { return false }

// Key reads none.
func Key(*os.File) (string, error) { return "", errors.ErrUnsupported }
