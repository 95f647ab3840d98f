package linediff

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"
)

// Lines splits data after each LF. The last line may lack its LF; empty data has
// no lines. The lines are parts of data, nothing is copied.
func Lines(data []byte) [][]byte { return AppendLines(nil, data) }

// AppendLines appends the lines of data to lines, whose room can be used again
// for the next file.
func AppendLines(lines [][]byte, data []byte) [][]byte {
	if len(data) > 0 {
		lines = slices.Grow(lines, bytes.Count(data, []byte("\n"))+1)
	}
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n') + 1
		if end == 0 {
			end = len(data)
		}
		lines = append(lines, data[:end:end])
		data = data[end:]
	}
	return lines
}

// number gives equal lines of a and b the same number and others different
// ones, so that they compare fast. The number is the place of the first such
// line, counting through a and then b.
func (r *room) number(a, b [][]byte) {
	n := 2 << bits.Len(uint(len(a)+len(b)))
	r.slots = slices.Grow(r.slots[:0], n)[:n]
	clear(r.slots)
	t := table{a: a, b: b, seed: maphash.MakeSeed(), slots: r.slots}
	r.old, r.new = t.numbers(r.old[:0], a, 0), t.numbers(r.new[:0], b, len(a))
}

// table is an open hash table of lines that holds only their places: a map
// would copy each line. It never fills more than half of its slots.
type table struct {
	a, b  [][]byte
	seed  maphash.Seed
	slots []int32 // places, from 1
}

func (t *table) numbers(out []int32, lines [][]byte, from int) []int32 {
	out = slices.Grow(out, len(lines))
	for i, line := range lines {
		out = append(out, t.number(line, int32(from+i)))
	}
	return out
}

// number is the place of the first line equal to the one that is at place.
func (t *table) number(line []byte, place int32) int32 {
	mask := uint64(len(t.slots) - 1)
	for at := maphash.Bytes(t.seed, line) & mask; ; at = (at + 1) & mask {
		if t.slots[at] == 0 {
			t.slots[at] = place + 1
			return place
		}
		if first := t.slots[at] - 1; bytes.Equal(t.line(first), line) {
			return first
		}
	}
}

func (t *table) line(place int32) []byte {
	if n := int32(len(t.a)); place >= n {
		return t.b[place-n]
	}
	return t.a[place]
}
