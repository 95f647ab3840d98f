package packfile

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Parallel calls do(0) to do(n-1), on all cores; a goroutine takes some at a
// time.
func Parallel(n, some int, do func(int)) {
	workers := min(runtime.GOMAXPROCS(0), (n+some-1)/some)
	var next atomic.Int64
	work := func(int) {
		for {
			end := int(next.Add(int64(some)))
			if end-some >= n {
				return
			}
			for i := end - some; i < min(end, n); i++ {
				do(i)
			}
		}
	}
	atOnce(workers, work)
}

// atOnce calls do(0) to do(n-1), each in a goroutine of its own: for what waits
// rather than computes.
func atOnce(n int, do func(int)) {
	if n == 1 {
		do(0)
		return
	}
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { do(i) })
	}
	group.Wait()
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
