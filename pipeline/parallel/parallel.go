// Package parallel calls one function for many numbers at once.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Do calls do for 0 to n-1, on all cores. The calls must not depend on each
// other; what they make goes into place i, so the result has one order.
func Do(n int, do func(i int)) {
	_ = Try(runtime.GOMAXPROCS(0), n, func(i int) error {
		do(i)
		return nil
	})
}

// Try calls do for 0 to n-1, taken up in this order by so many goroutines. Once
// a call has failed no other begins, so that all below it are done, and the
// error of the lowest that failed is returned: the same one in every run. A call that
// panics panics here, where the caller can recover from it.
func Try(workers, n int, do func(i int) error) error {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	var panicked atomic.Pointer[any]
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			defer func() {
				if value := recover(); value != nil {
					panicked.Store(&value)
					failed.Store(true)
				}
			}()
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if errs[i] = do(i); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	if value := panicked.Load(); value != nil {
		panic(*value)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
