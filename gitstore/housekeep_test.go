package gitstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

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
		if n := len(w.packs()); n > 52 { // theirs, and the one that is being added
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

// T80 A `git repack -ad` leaves out of its new pack what another's pack holds (with a .keep), and removes the old one
// when it is done. Meanwhile that pack is let go, and merged with others: what is in both is not lost.
func TestT80MergedBesideRepack(t *testing.T) {
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		t.Skip("COUNTERSIGN_LONG=1 runs it")
	}
	files, bytes := map[string]string{"a": "1\n"}, rand.NewChaCha8([32]byte{})
	for i := range 500 { // more than is appended below
		random := make([]byte, 1000)
		_, _ = bytes.Read(random)
		files[fmt.Sprint("file", i)] = string(random)
	}
	w := newWork(t, files)
	w.git("repack", "-a", "-d", "--quiet")
	old := w.packs().only(t)
	shared := strings.TrimSpace(w.git("rev-parse", "HEAD:a"))
	held := "pack/pack-" + strings.TrimSpace(w.stdin(shared+"\n", "pack-objects", "-q", ".git/objects/pack/pack"))
	w.write(".git/objects/"+held+".keep", "countersign\n")
	made := w.stdin("", "pack-objects", "-q", "--all", "--honor-pack-keep", "made")
	if strings.Contains(w.git("verify-pack", "-v", "made-"+made+".idx"), shared) {
		t.Fatal("the new pack has it")
	}
	fatal(t, os.Remove(w.path(".git/objects/"+held+".keep")))
	for i := range 60 {
		w.add(fmt.Sprint("line", i))
	}
	if n := len(w.packs()); n > 51 {
		t.Fatalf("%d packs", n)
	}
	for _, ext := range []string{".pack", ".idx"} {
		err := os.Rename(w.path("made-"+made+ext), w.path(".git/objects/pack/pack-"+made+ext))
		fatal(t, errors.Join(err, os.Remove(w.path(".git/objects/pack/"+strings.TrimSuffix(old, ".pack")+ext))))
	}
	w.git("fsck", "--strict")
	w.sound(60)
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
	fatal(w.t, err)
	out := packSet{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".pack") {
			out[e.Name()] = true
		}
	}
	return out
}
