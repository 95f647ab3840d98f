package workspace

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestT31Race: while a change is applied, somebody exchanges a directory of it
// with a link, again and again. Nothing outside and nothing in .git changes,
// each file is old or new, and when they have gone the apply can be finished.
// COUNTERSIGN_RACES sets how many applies are raced; each sees many exchanges.
func TestT31Race(t *testing.T) {
	rounds := 8
	if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_RACES")); err == nil {
		rounds = n
	}
	var swaps atomic.Int64
	outcomes := map[ledger.Outcome]int{}
	for n := range rounds {
		outcomes[race(t, n, &swaps)]++
		if t.Failed() {
			t.Fatalf("in round %d", n)
		}
	}
	t.Logf("%d exchanges in %d applies: %v", swaps.Load(), rounds, outcomes)
	if rounds >= 100 && (outcomes[ledger.OutcomeSuccess] == rounds || swaps.Load() < int64(rounds)) {
		t.Error("nobody got in between")
	}
}

func race(t *testing.T, n int, swaps *atomic.Int64) ledger.Outcome {
	before := files{"a": "1\n", "x/gone": "1\n", "x/old": "1\n", "x/y/gone": "1\n", "x/y/old": "1\n", "z": "1\n"}
	after := files{"a": "2\n", "x/new": "2\n", "x/old": "2\n", "x/y/new": "2\n", "x/y/old": "2\n", "x/y/z/newer": "2\n", "z": "2\n"}
	bystanders := files{"gone": "keep\n", "old": "keep\n", "y/gone": "keep\n", "y/old": "keep\n", "y/z/x": "keep\n"}
	dir, outside, state := t.TempDir(), t.TempDir(), t.TempDir()
	defer func() { // thousands of rounds would fill the disk
		if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(outside), os.RemoveAll(state)); err != nil {
			t.Error(err)
		}
	}()
	hooks := filepath.Join(dir, ".git/hooks")
	before.put(t, dir)
	bystanders.put(t, outside)
	bystanders.put(t, hooks)
	victim := filepath.Join(dir, []string{"x", "x/y"}[n%2])
	target, err := filepath.Rel(filepath.Dir(victim), []string{hooks, outside}[n/2%2])
	link := victim + ".link" // beside it, as the target is relative: an os.Root refuses others by itself
	fatal(t, errors.Join(err, os.Symlink(target, link)))
	tree, cs := openWith(t, dir, state), changes(before, after)
	begin, stop := exchanging(t, victim, link, swaps)
	var steps atomic.Int64
	tree.step = func() {
		if steps.Add(1) == int64(1+n%25) { // the later, the further the apply has come
			begin()
		}
	}
	ops := tree.Write(cs)
	stop()
	tree.step = nil

	for _, place := range []string{outside, hooks} {
		if got := get(t, place); !maps.Equal(got, bystanders) {
			t.Errorf("%s is %v", place, got)
		}
	}
	oldOrNew(t, tree, cs)
	if got := outcome(tree.Write(cs)); got != ledger.OutcomeSuccess {
		t.Errorf("afterwards: %s", got)
	}
	return outcome(ops)
}

// exchanging swaps two names from one call to another, and leaves them as they
// were.
func exchanging(t *testing.T, a, b string, swaps *atomic.Int64) (begin, stop func()) {
	exchange := func() {
		if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
			t.Error(err)
		}
		swaps.Add(1)
	}
	var over atomic.Bool
	var wg sync.WaitGroup
	begin = func() {
		wg.Go(func() {
			for !over.Load() {
				exchange()
				for range swaps.Load() % 7 { // now and then each is there for longer
					_, _ = os.Lstat(a)
				}
				exchange()
				for range swaps.Load() % 11 {
					_, _ = os.Lstat(a)
				}
			}
		})
	}
	stop = func() {
		over.Store(true)
		wg.Wait()
	}
	return begin, stop
}

// A pipe that takes the place of a file after it was looked at is an error to who reads it, and nobody waits for its writer.
func TestPipeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := Open(dir, t.TempDir(), false)
	if err == nil {
		err = unix.Mkfifo(filepath.Join(dir, "f"), 0o600)
	}
	fatal(t, err)
	if data, err := fs.ReadFile(w.files(), "f"); err == nil {
		t.Errorf("%q", data)
	}
}
