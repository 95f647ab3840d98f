package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// linePipe is a pipe whose reader gets what one write wrote at a time, and no more (pipe(2), O_DIRECT).
// Who reads less than that loses the rest.
func linePipe() (r, w *os.File, err error) {
	var ends [2]int
	if unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_DIRECT) != nil {
		return os.Pipe()
	}
	return os.NewFile(uintptr(ends[0]), "|0"), os.NewFile(uintptr(ends[1]), "|1"), nil
}
