package gitstore_test

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// TestT31ModeZero: git checks out an entry of mode 0 as a submodule and only warns of it, so
// that no change may leave it out: nobody would review it.
func TestT31ModeZero(t *testing.T) {
	t.Parallel()
	w := newWork(t, map[string]string{"a": "a\n"})
	head := w.git("rev-parse", "HEAD")
	blob, err := hex.DecodeString(w.git("rev-parse", "HEAD:a"))
	fatal(t, err)
	commit := func(entries ...string) string {
		t.Helper()
		var raw []byte
		for _, e := range entries {
			raw = append(append(append(raw, e...), 0), blob...)
		}
		fatal(t, os.WriteFile(w.path("tree"), raw, 0o600))
		return w.git("commit-tree", "-p", head, "-m", "x", w.git("hash-object", "-t", "tree", "-w", "--literally", "tree"))
	}
	plain, added, odd := commit("100644 a", "100644 b"), commit("100644 a", "0 b"), commit("100644 a", "0 b", "100644 c")
	for name, c := range map[string][2]string{"added": {head, added}, "in the place of a file": {plain, added}, "gone": {added, head}, "beside a file": {head, odd}} {
		var unfit *patch.Error
		if set, err := w.open().Diff(context.Background(), c[0], c[1]); !errors.As(err, &unfit) || errors.Is(err, patch.ErrUnchanged) {
			t.Errorf("%s: %q, %v", name, set.Paths(), err)
		}
	}
	if _, files, err := w.open().Drift(context.Background(), head, added); err != nil || !slices.Equal(files, []string{"b"}) {
		t.Errorf("drift: %q, %v", files, err)
	}
}
