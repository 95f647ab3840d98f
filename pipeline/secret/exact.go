package secret

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
)

// A known is a value that is a secret wherever it stands.
type known struct {
	value []byte
	kind  string
	// What was cut off the value at either end, in a search of encoded text.
	head, tail []byte
}

const (
	minKnown = 8
	maxPiece = 128 // longer values are looked for piece by piece
	minPiece = 16  // of a value that has white space
	filter   = 1 << 16
)

// exact finds known values in one pass. Where the eight bytes at a place begin
// some value, the longest value that stands there is found by a binary search,
// so the cost does not depend on how many begin alike.
type exact struct {
	values []known // sorted
	parent []int32 // the longest other value that this one begins with, or -1
	begins map[uint64][2]int32
	filter [filter / 64]uint64
}

// knownValues are looked for in text as it stands and in what was decoded.
type knownValues struct {
	list         []known
	raw, encoded *exact
}

func newKnownValues(list []known) knownValues {
	if len(list) == 0 {
		return knownValues{}
	}
	return knownValues{list, newExact(list, false), newExact(list, true)}
}

// newExact prepares for values; for encoded text without the two bytes at
// either end, which an encoding may share with its neighbours.
func newExact(list []known, encoded bool) *exact {
	x := &exact{begins: map[uint64][2]int32{}}
	for _, k := range list {
		if encoded && len(k.value) >= minKnown+4 {
			n := len(k.value)
			k.head, k.value, k.tail = k.value[:2], k.value[2:n-2], k.value[n-2:]
		}
		x.values = append(x.values, k)
	}
	slices.SortFunc(x.values, func(a, b known) int {
		return cmp.Or(bytes.Compare(a.value, b.value), cmp.Compare(rank(a.kind), rank(b.kind)), cmp.Compare(a.kind, b.kind))
	})
	x.values = slices.CompactFunc(x.values, func(a, b known) bool { return bytes.Equal(a.value, b.value) })
	var open []int32
	for i, k := range x.values {
		for len(open) > 0 && !bytes.HasPrefix(k.value, x.values[open[len(open)-1]].value) {
			open = open[:len(open)-1]
		}
		parent := int32(-1)
		if len(open) > 0 {
			parent = open[len(open)-1]
		}
		x.parent, open = append(x.parent, parent), append(open, int32(i))
		head := binary.LittleEndian.Uint64(k.value)
		r, ok := x.begins[head]
		if !ok {
			r[0] = int32(i)
		}
		r[1] = int32(i) + 1
		x.begins[head] = r
		h := hash(head)
		x.filter[h/64] |= 1 << (h % 64)
	}
	return x
}

func hash(head uint64) uint64 { return head * 0x9e3779b97f4a7c15 >> 48 }

// scan calls hit for each known value in text; they do not overlap.
func (x *exact) scan(text []byte, hit func(k known, start, end int)) {
	for i := 0; i+minKnown <= len(text); i++ {
		head := binary.LittleEndian.Uint64(text[i:])
		if h := hash(head); x.filter[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		if k, size := x.at(text[i:min(len(text), i+maxPiece)], head); size > 0 {
			hit(k, i, i+size)
			i += size - 1
		}
	}
}

// at returns the value that text begins with, and how much of it is there: a
// text that ends within a value, as one that was cut off does, counts.
func (x *exact) at(text []byte, head uint64) (known, int) {
	r, ok := x.begins[head]
	if !ok {
		return known{}, 0
	}
	values := x.values[r[0]:r[1]]
	i := r[0] - 1 + int32(sort.Search(len(values), func(i int) bool { return bytes.Compare(values[i].value, text) > 0 }))
	if next := i + 1; next < r[1] && bytes.HasPrefix(x.values[next].value, text) {
		return x.values[next], len(text)
	}
	for i >= r[0] && !bytes.HasPrefix(text, x.values[i].value) {
		i = x.parent[i]
	}
	if i < r[0] {
		return known{}, 0
	}
	return x.values[i], len(x.values[i].value)
}

// pieces are what is looked for in place of a value: its words where it is
// made of long ones, as a key block is, each cut to maxPiece. Overlapping cuts
// cover all of it.
func pieces(value []byte, kind string) []known {
	words := [][]byte{value}
	if len(value) > maxPiece {
		if long := longWords(value); long != nil {
			words = long
		}
	}
	var out []known
	for _, w := range words {
		if len(w) < minKnown {
			continue
		}
		for len(w) > maxPiece {
			out = append(out, known{value: w[:maxPiece], kind: kind})
			w = w[min(maxPiece, len(w)-maxPiece):]
		}
		out = append(out, known{value: w, kind: kind})
	}
	return out
}

// longWords returns the words of at least minPiece bytes if they make up most
// of the value.
func longWords(value []byte) [][]byte {
	var long [][]byte
	sum := 0
	for _, w := range bytes.Fields(value) {
		if len(w) >= minPiece {
			long, sum = append(long, w), sum+len(w)
		}
	}
	if 2*sum < len(value) {
		return nil
	}
	return long
}
