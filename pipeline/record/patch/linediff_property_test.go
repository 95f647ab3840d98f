package patch_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// checkDiff tests what holds for every pair of texts. Small ones are below the
// bound, so their edits are also as few as possible.
func checkDiff(t *testing.T, old, new []byte) {
	t.Helper()
	a, b := patch.Lines(old), patch.Lines(new)
	edits := patch.DiffLines(a, b)
	checkApplies(t, old, new, edits)
	if again := patch.DiffLines(a, b); !slices.Equal(edits, again) {
		t.Fatalf("%v, then %v for %q and %q", edits, again, old, new)
	}
	if len(a)+len(b) > 512 {
		return
	}
	got, want := 0, len(a)+len(b)-2*longestCommon(a, b)
	for _, e := range edits {
		got += e.OldEnd - e.OldStart + e.NewEnd - e.NewStart
	}
	if got != want {
		t.Fatalf("%d lines changed where %d do, by %v, for %q and %q", got, want, edits, old, new)
	}
}

// longestCommon is the length of the longest common subsequence, by the
// textbook's table.
func longestCommon(a, b [][]byte) int {
	above, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for _, line := range a {
		for j := range b {
			row[j+1] = max(above[j+1], row[j])
			if bytes.Equal(line, b[j]) {
				row[j+1] = above[j] + 1
			}
		}
		above, row = row, above
	}
	return above[len(b)]
}

func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		kinds := 1 + r.IntN(8)
		checkDiff(t, random(r.Uint64(), kinds, r.IntN(24)), random(r.Uint64(), kinds, r.IntN(24)))
	}
	for range 200 { // long, with few changes
		old := random(r.Uint64(), 1+r.IntN(50), 200)
		checkDiff(t, old, mutate(r, old))
	}
}

// mutate drops, adds or changes about one line in twenty.
func mutate(r *rand.Rand, text []byte) []byte {
	var out []byte
	for _, line := range patch.Lines(text) {
		switch r.IntN(60) {
		case 0:
		case 1:
			out = append(append(out, line...), "new\n"...)
		case 2:
			out = append(out, "changed\n"...)
		default:
			out = append(out, line...)
		}
	}
	return out
}

func FuzzDiff(f *testing.F) {
	for _, c := range readGolden(f) {
		f.Add([]byte(c.Old), []byte(c.New))
	}
	f.Fuzz(checkDiff)
}
