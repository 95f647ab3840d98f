package gitstore_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestT58Packs: however many appends, there are few packs, no loose objects of
// ours, and nothing is lost; packs of others are left alone.
func TestT58Packs(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	w.git("repack", "-a", "-d", "--quiet")
	theirs := w.packs()
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprint("line", i))
		w.add(want[i])
		if n := len(w.packs()); n > 1+3*8 {
			t.Fatalf("%d packs after %d appends", n, i+1)
		}
	}
	storetest.CheckLines(t, w.Open(), want)
	w.sound(100)
	if n := len(w.packs()); n > 16 {
		t.Errorf("%d packs at the end", n)
	}
	if !w.packs()[theirs.only(t)] {
		t.Error("somebody else's pack is gone")
	}
	if out := w.git("count-objects", "-v"); !strings.Contains(out, "\ngarbage: 0") || !strings.HasPrefix(out, "count: 0\n") {
		t.Error(out)
	}
	// git packs everything: what is remembered is gone, and appends go on.
	w.git("gc", "--quiet")
	w.add("after")
	w.sound(101)
	// Notes that were damaged or lost cost nothing but the merging.
	for _, notes := range []string{"nonsense\n\x00", "pack-1 2 3\npack-x\n", ""} {
		w.write(".git/countersign/packs", notes)
		w.add(fmt.Sprint("with ", len(notes)))
	}
	if err := os.Remove(w.path(".git/countersign/packs")); err != nil {
		t.Fatal(err)
	}
	w.add("without")
	w.sound(105)
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
