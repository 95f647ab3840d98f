package lineage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/object"
)

// A tree is one as it is compared with an earlier version of itself: most of its entries are the same, and are
// compared as bytes alone.
type tree struct {
	format object.Format
	raw    []byte
	ends   []int // where entries end in raw, of a sound one
	known  bool  // whether it is sound
	sound  bool
}

// isSound reports whether all entries of a tree are as git writes them. What it has in common with an earlier version
// that is sound is not read again.
func (t *tree) isSound(earlier *tree) bool {
	if !t.known {
		t.known = true
		t.sound = earlier != nil && earlier.sound && t.read(earlier) || t.read(&tree{format: t.format})
	}
	return t.sound
}

// read finds out where entries end, and reports whether those are sound that an earlier one has not.
func (t *tree) read(earlier *tree) bool {
	first, last := earlier.shared(t.raw)
	grown, rest := len(t.raw)-len(earlier.raw), earlier.ends[len(earlier.ends)-last:]
	ends := append(make([]int, 0, len(earlier.ends)+1), earlier.ends[:first]...)
	at, end := earlier.start(first), earlier.start(len(earlier.ends)-last)+grown
	var before object.Entry
	if first > 0 {
		before, _, _ = t.format.CutEntry(earlier.raw[earlier.start(first-1):])
	}
	for at < end {
		e, after, ok := t.format.CutEntry(t.raw[at:end])
		if !ok || sound(before, e) != nil {
			return false
		}
		before, at = e, end-len(after)
		ends = append(ends, at)
	}
	if last > 0 {
		if e, _, ok := t.format.CutEntry(t.raw[end:]); !ok || sound(before, e) != nil {
			return false
		}
	}
	for _, e := range rest {
		ends = append(ends, e+grown)
	}
	t.ends = ends
	return true
}

// start is where the i-th entry begins.
func (t *tree) start(i int) int {
	if i == 0 {
		return 0
	}
	return t.ends[i-1]
}

// shared is how many entries of a sound tree another begins with, and with how many of the others it ends.
func (t *tree) shared(raw []byte) (first, last int) {
	first, whole := slices.BinarySearch(t.ends, prefix(t.raw, raw))
	if whole {
		first++
	}
	from := t.start(first)
	tail := len(t.raw) - suffix(t.raw[from:], raw[from:])
	j := first
	if tail > from {
		j, _ = slices.BinarySearch(t.ends, tail)
		j++
	}
	return first, len(t.ends) - j
}

// apart are the parts of two sound trees that differ.
func apart(old, new *tree) (before, after []byte) {
	first, last := old.shared(new.raw)
	from, end := old.start(first), old.start(len(old.ends)-last)
	to := end + len(new.raw) - len(old.raw)
	if _, entry := slices.BinarySearch(new.ends, to); !entry && to > from { // bytes that are a part of an entry there
		end, to = len(old.raw), len(new.raw)
	}
	return old.raw[from:end], new.raw[from:to]
}

// prefix is how many bytes two texts begin with that are the same.
func prefix(a, b []byte) (n int) {
	for ; n+8 <= min(len(a), len(b)); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// suffix is how many they end with.
func suffix(a, b []byte) (n int) {
	for ; n+8 <= min(len(a), len(b)); n += 8 {
		if x := binary.LittleEndian.Uint64(a[len(a)-n-8:]) ^ binary.LittleEndian.Uint64(b[len(b)-n-8:]); x != 0 {
			return n + bits.LeadingZeros64(x)/8
		}
	}
	for n < min(len(a), len(b)) && a[len(a)-n-1] == b[len(b)-n-1] {
		n++
	}
	return n
}

var errTree = errors.New("is malformed")

// sound refuses entries that no git writes: out of order, twice, with a name
// that is none, or a mode that is written otherwise.
func sound(before, e object.Entry) error {
	switch n := e.Name; {
	case n[0] == '.' && (len(n) == 1 || string(n) == ".." || strings.EqualFold(string(n), ".git")), bytes.IndexByte(n, '/') >= 0:
		return fmt.Errorf("has an entry named %+q", n)
	case before.Name != nil && object.Compare(before, e) >= 0, bytes.Equal(before.Name, n):
		return fmt.Errorf("has the entry %+q out of order, or twice", n)
	}
	switch string(e.Mode) {
	case "40000", "100644", "100755", "120000", "160000":
		return nil
	}
	return fmt.Errorf("has an entry %+q with the mode %+q", e.Name, e.Mode)
}
