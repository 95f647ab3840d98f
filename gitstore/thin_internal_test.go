package gitstore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// T80 A copy that has grown too large begins anew in another directory: processes
// at work in the one before lose nothing.
func TestT80CopyBeginsAnew(t *testing.T) {
	defer func(was int) { maxThinPacks = was }(maxThinPacks)
	maxThinPacks = 2
	dir := filepath.Join(t.TempDir(), "copy")
	for _, c := range []struct {
		want string
		left []string
	}{
		{"objects", []string{"objects"}},
		{"objects-1", []string{"objects", "objects-1"}},
		{"objects-2", []string{"objects-1", "objects-2"}},
		{"objects-3", []string{"objects-2", "objects-3"}},
	} {
		for range 2 { // a second process takes the same
			got, err := thinObjects(dir)
			if err != nil || filepath.Base(got) != c.want {
				t.Fatalf("%s, %v; want %s", got, err, c.want)
			}
		}
		var left []string
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if err != nil || !slices.Equal(left, c.left) {
			t.Errorf("%v are left, %v; want %v", left, err, c.left)
		}
		for n := range 3 {
			if err := os.WriteFile(filepath.Join(dir, c.want, "pack", fmt.Sprintf("pack-%d.pack", n)), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string]int{"objects": 0, "objects-7": 7, "objects-0": -1, "objects-07": -1, "objects-": -1, "other": -1} {
		if got := generationOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
