package patch

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls do for 0 to n-1, on all cores. The calls must not depend on
// each other; what they make goes into place i, so the result has one order.
func parallel(n int, do func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}
