package parallel_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/parallel"
)

func TestDo(t *testing.T) {
	calls := make([]atomic.Int32, 1000)
	parallel.Do(len(calls), func(i int) { calls[i].Add(1) })
	for i := range calls {
		if n := calls[i].Load(); n != 1 {
			t.Errorf("%d was called %d times", i, n)
		}
	}
	parallel.Do(0, func(int) { t.Error("called for nothing") })
}

// TestTry: the error is the lowest one's, also where another failed first, and
// all below it are done.
func TestTry(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 8} {
		for range 50 {
			var done [100]atomic.Bool
			later := make(chan bool)
			err := parallel.Try(workers, len(done), func(i int) error {
				done[i].Store(true)
				switch {
				case i == 41:
					defer close(later)
				case i == 40 && workers > 1:
					<-later
				case i != 40:
					return nil
				}
				return fmt.Errorf("%d failed", i)
			})
			if err == nil || err.Error() != "40 failed" {
				t.Fatalf("%d workers: %v", workers, err)
			}
			for i := range 40 {
				if !done[i].Load() {
					t.Fatalf("%d workers: %d was not called", workers, i)
				}
			}
		}
	}
}

// TestPanics: what a call panics with, the caller can recover from, whoever made the call.
func TestPanics(t *testing.T) {
	for _, workers := range []int{1, 4} {
		func() {
			defer func() {
				if got := recover(); got != "seven" {
					t.Errorf("%d workers: %v", workers, got)
				}
			}()
			_ = parallel.Try(workers, 20, func(i int) error {
				if i == 7 {
					panic("seven")
				}
				return nil
			})
			t.Errorf("%d workers: it came back", workers)
		}()
	}
}
