//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package console

import (
	"errors"
	"os"
	"time"
)

// EmptyInput is not known here, so that nobody is asked.
func EmptyInput(*os.File) error { return errors.ErrUnsupported }

func toForeground(_, _ *os.File) {}

func setSize(_ *os.File, _, _ int) {}

func readAnswers(*os.File, string, time.Duration) string { return "" }

// Quiet reports that no single key is read here.
func Quiet(*os.File) bool { return false }

// Key reads none.
func Key(*os.File) (string, error) { return "", errors.ErrUnsupported }
