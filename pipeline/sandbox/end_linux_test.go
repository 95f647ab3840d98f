package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// soon is far less than the 1000 seconds that the commands here sleep, and more than a slow machine needs to end them.
const soon = time.Minute

func TestTimeLimit(t *testing.T) {
	for kind, s := range boxes(writer) {
		c := sh("echo begun; trap '' TERM; sleep 1000 & sleep 1000")
		var r sandbox.Result
		for c.Timeout = 200 * time.Millisecond; len(r.Stdout) == 0 && c.Timeout < soon; c.Timeout *= 2 { // until it has begun by then
			r = run(t, s, openDir(t), c)
			if !r.TimedOut || r.Signal != "killed" || r.Duration > soon {
				t.Errorf("%s: %+v", kind, r)
			}
		}
		if string(r.Stdout) != "begun\n" {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

func TestCancel(t *testing.T) {
	for kind, s := range boxes(writer) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		r, err := s.Run(ctx, openDir(t), sh("sleep 1000"))
		if !errors.Is(err, context.Canceled) || r.TimedOut || r.Duration > soon {
			t.Errorf("%s: %v, %+v", kind, err, r)
		}
		if _, err := s.Run(ctx, openDir(t), sh("true")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// alive are the processes that have name among their arguments.
func alive(name string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		var pid int
		if fmt.Sscanf(f, "/proc/%d/", &pid); slices.Contains(strings.Split(string(b), "\x00"), name) && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestNothingIsLeftBehind(t *testing.T) {
	w := newWorld(t)
	name := fmt.Sprint("left-outside-", os.Getpid())
	must(t, w.outside("leave", name))
	var pids []int
	waitFor(t, func() bool { // else the test proves nothing; a busy kernel may tell of no arguments at first
		pids = alive(name)
		return len(pids) == 1
	})
	must(t, syscall.Kill(pids[0], syscall.SIGKILL))
	for kind, s := range boxes(w.box()) {
		if kind == "danger" {
			continue // a session of its own escapes there, as documented
		}
		name := fmt.Sprintf("left-by-%s-%d", kind, os.Getpid())
		r := w.inside(t, s, sandbox.Command{}, "leave", name)
		if r.ExitCode != 0 || r.Duration > soon {
			t.Errorf("%s: exit code %d after %v: %s", kind, r.ExitCode, r.Duration, r.Stderr)
		}
		if pids := alive(name); len(pids) > 0 {
			t.Errorf("%s: processes %v are left", kind, pids)
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// A process that holds the output open does not hold us, in whatever mode.
func TestOutputHeldOpen(t *testing.T) {
	for kind, s := range boxes(writer) {
		r := run(t, s, openDir(t), sh("sleep 1000 & echo done"))
		if r.ExitCode != 0 || string(r.Stdout) != "done\n" || r.Duration > soon {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

func TestForkBomb(t *testing.T) {
	for kind, s := range boxes(writer) {
		if kind == "danger" {
			continue
		}
		s.Limits.Processes = 40
		sleeps := fmt.Sprint(1000+len(kind), os.Getpid()) // a number of seconds that nobody else sleeps
		bomb := "b() { b | b & }; b; sleep " + sleeps
		c := sh(bomb)
		c.Timeout = 500 * time.Millisecond
		r := run(t, s, openDir(t), c)
		if r.Duration > soon {
			t.Errorf("%s: took %v", kind, r.Duration)
		}
		waitFor(t, func() bool { return len(alive(bomb))+len(alive(sleeps)) == 0 })
	}
}

// gigabytes of output are counted, not kept.
func TestFloodOfOutput(t *testing.T) {
	gigabytes := int64(1)
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		gigabytes = 10
	}
	w := newWorld(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	r := w.inside(t, w.box(), sandbox.Command{}, "flood", fmt.Sprint(gigabytes<<10))
	runtime.ReadMemStats(&after)
	t.Logf("%d GiB in %v, allocated %d KiB", gigabytes, time.Since(begun), (after.TotalAlloc-before.TotalAlloc)>>10)
	if r.StdoutTotal != gigabytes<<30 || len(r.Stdout) != 1<<20 || !r.StdoutTruncated || r.ExitCode != 0 {
		t.Errorf("kept %d of %d, truncated %v, exit code %d", len(r.Stdout), r.StdoutTotal, r.StdoutTruncated, r.ExitCode)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func TestManyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 12 {
		dir := openDir(t)
		wg.Go(func() {
			r, err := writer.Run(context.Background(), dir, sh(fmt.Sprintf("echo %d; exit %d", i, i)))
			if missing := (*sandbox.UnavailableError)(nil); errors.As(err, &missing) {
				return
			}
			if err != nil || r.ExitCode != i || string(r.Stdout) != fmt.Sprintf("%d\n", i) {
				t.Errorf("%d: %v %+v", i, err, r)
			}
		})
	}
	wg.Wait()
}
