//go:build !linux

package console

import "os"

// linePipe is a pipe whose reader may take many lines at a time.
func linePipe() (r, w *os.File, err error) { return os.Pipe() }
