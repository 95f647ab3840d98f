package gitstore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestT55BitFlips flips one bit at a time in the packs and indexes of a ledger:
// each is found, as git fsck finds it, and none ends the program.
func TestT55BitFlips(t *testing.T) {
	w := newWork(t, nil)
	appendAll(t, w.dir, lives(t, storetest.Mixed(12)...), 25, nil)
	w.git("repack", "-q", "-d") // some packs are git's
	w.git("prune-packed")
	if r, err := auditOf(t, w.dir, "", nil); err != nil || !r.OK {
		t.Fatal(r, err)
	}
	packs, err := filepath.Glob(w.path(".git/objects/pack/*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatal(packs, err)
	}
	flips := 8
	if os.Getenv("COUNTERSIGN_TAMPER") != "" {
		flips = 60
	}
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range flips {
		file := packs[r.IntN(len(packs))]
		if r.IntN(4) == 0 {
			file = strings.TrimSuffix(file, ".pack") + ".idx"
		}
		data, err := os.ReadFile(file)
		fatal(t, err)
		at, bit := r.IntN(len(data)), r.IntN(8)
		overwrite(t, file, at, data[at]^1<<bit)
		what := fmt.Sprintf("%s byte %d bit %d", filepath.Base(file), at, bit)
		got, err := auditOf(t, w.dir, "", nil)
		switch {
		case err != nil:
			seen["cannot be read"]++
		case got.OK:
			t.Errorf("%s: not found", what)
		default:
			seen[told(got)]++
		}
		if out, err := w.try("fsck", "--full"); err == nil {
			t.Logf("%s: git fsck says nothing (%q), we %s", what, out, told(got))
		}
		overwrite(t, file, at, data[at])
	}
	if r, err := auditOf(t, w.dir, "", nil); err != nil || !r.OK {
		t.Error("afterwards:", r, err)
	}
	t.Log(flips, seen)
}

func overwrite(t *testing.T, file string, at int, b byte) {
	t.Helper()
	fatal(t, os.Chmod(file, 0o644))
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	fatal(t, err)
	if _, err := f.WriteAt([]byte{b}, int64(at)); err != nil {
		t.Fatal(err)
	}
	fatal(t, f.Close())
}
