//go:build unix

package statements_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/statements"
)

// T31 While the program works, a directory of the target is again and again
// exchanged for a link out of the target, and files in it are removed. Nothing
// outside changes, and every report is whole.
func TestT31ParentBecomesLink(t *testing.T) {
	t.Chdir(t.TempDir())
	var lines []string
	tree := files{"outside/e/": ""}
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("create d/e/%02d x", i), fmt.Sprintf("modify d/m%02d y", i), fmt.Sprintf("delete d/z%02d", i))
		for _, dir := range []string{"t/d", "outside"} {
			tree[fmt.Sprintf("%s/m%02d", dir, i)], tree[fmt.Sprintf("%s/z%02d", dir, i)] = "x", "x"
		}
	}
	tree["p/patch.json"] = patchOf(t, lines...)
	tree.make(t, ".")
	before := read(t, "outside")

	begin, stop, stopped := make(chan struct{}), make(chan struct{}), make(chan int)
	go func() { stopped <- exchange(begin, stop) }()
	outcomes := map[string]int{}
	for range applies() {
		<-begin
		r, err := statements.Apply("p", "t", false)
		must(t, err)
		outcomes[string(r.Outcome)]++
		if r.Outcome != "REFUSED" && len(r.Operations) != len(lines) {
			t.Fatalf("the report is lost: %s", told(r))
		}
	}
	close(stop)
	t.Logf("%v, the directory was exchanged %d times", outcomes, <-stopped)
	if outcomes["REFUSED"] == 0 || outcomes["PARTIAL"] == 0 {
		t.Error("the race was not run")
	}
	if after := read(t, "outside"); !maps.Equal(before, after) {
		t.Errorf("outside was %v, is %v", before, after)
	}
	for name := range read(t, "t") {
		if strings.Contains(name, ".countersign-") {
			t.Errorf("left behind: %s", name)
		}
	}
}

// exchange puts a link where a directory is, and the directory back, until it is
// told to stop; it returns how often. One apply may begin while the directory is
// there, some of them a moment before it goes, and the next while the link is.
func exchange(begin, stop chan struct{}) (n int) {
	begun := 0
	mayBegin := func() {
		select {
		case begin <- struct{}{}:
			for i := 0; i <= begun%100*100; i++ {
				runtime.Gosched()
			}
			begun++
		default:
		}
	}
	for {
		select {
		case <-stop:
			return n
		default:
		}
		if begun%2 == 0 {
			mayBegin()
		}
		_ = os.Rename("t/d", "t/real")
		if os.Symlink("../outside", "t/d") == nil {
			n++
		}
		if begun%2 == 1 {
			mayBegin()
		}
		_ = os.RemoveAll("t/d") // the link, or what an apply has made there
		_ = os.Rename("t/real", "t/d")
		_ = os.Remove(fmt.Sprintf("t/d/e/%02d", n%20))
	}
}

func applies() int {
	if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_RACES")); err == nil {
		return n
	}
	return 60
}

// A pipe in the target is not waited for, and neither replaced nor removed.
func TestSpecialFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	files{"t/": "", "p/patch.json": patchOf(t, "create a x", "modify b x", "delete c", "create a/b x")}.make(t, ".")
	for _, name := range []string{"a", "b", "c"} {
		must(t, syscall.Mkfifo("t/"+name, 0o666))
	}
	want := "FAILED 4 operations failed\ncreate a -→- 0 file already exists: a\ncreate a/b -→- 0 cannot write: a/b\n" +
		"modify b -→- 0 cannot write: b\ndelete c -→- 0 cannot write: c"
	done := make(chan string)
	go func() {
		var said []string
		for _, dryRun := range []bool{true, false} {
			r, err := statements.Apply("p", "t", dryRun)
			said = append(said, told(r), fmt.Sprint(err))
		}
		done <- strings.Join(said, "|")
	}()
	select {
	case got := <-done:
		if got != want+"|<nil>|"+want+"|<nil>" {
			t.Errorf("got %s\nwant %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("waits for a pipe")
	}
}
