package gitstore_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestT58Packs: however many appends, there are few packs, no loose objects of
// ours, and nothing is lost; packs that others keep are left alone.
func TestT58Packs(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	w.git("repack", "-a", "-d", "--quiet")
	theirs := w.packs().only(t)
	w.write(".git/objects/pack/"+strings.TrimSuffix(theirs, ".pack")+".keep", "mine\n")
	var want []string
	for i := range 120 {
		want = append(want, fmt.Sprint("line", i))
		w.add(want[i])
		if n := len(w.packs()); n > 51 {
			t.Fatalf("%d packs after %d appends", n, i+1)
		}
	}
	storetest.CheckLines(t, w.Open(), want)
	w.sound(120)
	if !w.packs()[theirs] {
		t.Error("somebody else's pack is gone")
	}
	if out := w.git("count-objects", "-v"); !strings.Contains(out, "\ngarbage: 0") || !strings.HasPrefix(out, "count: 0\n") {
		t.Error(out)
	}
	// git packs everything, and appends go on.
	w.git("gc", "--quiet")
	w.add("after")
	w.sound(121)
}

// TestT80AloneWithGC: nothing is repacked beside a "git gc" that is at work, and none works beside a repack.
func TestT80AloneWithGC(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	w.write(".git/gc.pid", fmt.Sprint(os.Getpid(), " elsewhere"))
	for i := range 60 {
		w.add(fmt.Sprint("line", i))
	}
	if n := len(w.packs()); n < 60 {
		t.Errorf("%d packs are left beside a collection", n)
	}
	long := time.Now().Add(-13 * time.Hour)
	if err := os.Chtimes(w.path(".git/gc.pid"), long, long); err != nil { // one that was killed
		t.Fatal(err)
	}
	w.add("last")
	if n := len(w.packs()); n > 51 {
		t.Errorf("%d packs", n)
	}
	for _, left := range []string{"gc.pid", "gc.pid.lock"} {
		if _, err := os.Lstat(w.path(".git/" + left)); err == nil {
			t.Errorf("%s is left", left)
		}
	}
	w.sound(61)
}

type packSet map[string]bool

func (p packSet) only(t *testing.T) string {
	if len(p) != 1 {
		t.Fatalf("%d packs", len(p))
	}
	for name := range p {
		return name
	}
	return ""
}

func (w work) packs() packSet {
	entries, err := os.ReadDir(w.path(".git/objects/pack"))
	if err != nil {
		w.t.Fatal(err)
	}
	out := packSet{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".pack") {
			out[e.Name()] = true
		}
	}
	return out
}
