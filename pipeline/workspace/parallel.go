package workspace

import (
	"path"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

// workers is enough to keep the processors busy while some wait for the disk.
func workers() int { return 2 * runtime.GOMAXPROCS(0) }

// inParallel calls do for 0 to n-1, taken up in this order by a few goroutines.
// Once a call has failed no other begins, so that all below it are done, and
// the error of the lowest that failed is returned: the same one in every run.
func inParallel(workers, n int, do func(int) error) error {
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
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
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
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A folder is a directory with the indexes of those files of a change that are
// in it. It is opened once for all of them, and is one worker's.
type folder struct {
	name  string
	files []int
}

// folders sorts the files that are wanted into folders, in order.
func folders(files []patch.Change, wanted func(int) bool) []folder {
	var out []folder
	at := map[string]int{}
	for i, f := range files {
		if !wanted(i) {
			continue
		}
		dir := path.Dir(f.Path)
		n, known := at[dir]
		if !known {
			n = len(out)
			at[dir] = n
			out = append(out, folder{name: dir})
		}
		out[n].files = append(out[n].files, i)
	}
	return out
}

// parents returns the directories above a path, nearest first, without ".".
func parents(name string) []string {
	var out []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		out = append(out, dir)
	}
	return out
}
