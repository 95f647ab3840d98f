package sandbox

import "time"

// Limits bound what a command may use. A field that is not above zero takes its default.
type Limits struct {
	Output    int64 // bytes kept of each of the two streams; the rest is counted and thrown away
	Memory    int64 // bytes of address space of one process; less than MinMemory is raised to it
	Processes int   // processes and threads at one time
	FileSize  int64 // bytes of one file
}

// MinMemory is the smallest address space a command gets: a Go or Java runtime
// reserves more than 1 GiB before it does anything.
const MinMemory = 2 << 30

// DefaultTimeout is how long a command without a Timeout may run.
const DefaultTimeout = 10 * time.Minute

// DefaultLimits are the limits where nothing else is said.
var DefaultLimits = Limits{Output: 1 << 20, Memory: 4 << 30, Processes: 1024, FileSize: 1 << 30}

func (l Limits) orDefaults() Limits {
	l.Output = positive(l.Output, DefaultLimits.Output)
	l.Memory = max(positive(l.Memory, DefaultLimits.Memory), MinMemory)
	l.Processes = positive(l.Processes, DefaultLimits.Processes)
	l.FileSize = positive(l.FileSize, DefaultLimits.FileSize)
	return l
}

func positive[N ~int | ~int64](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}
