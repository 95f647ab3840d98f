package patch

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
)

// Bounds of the search, part of the specification.
const (
	maxEdits = 4096
	maxWork  = 1 << 29
)

// An Edit says that lines [OldStart,OldEnd) of the old text are replaced by
// lines [NewStart,NewEnd) of the new one. Lines count from 0.
type Edit struct{ OldStart, OldEnd, NewStart, NewEnd int }

// DiffLines is the one line diff of the project: it returns the edits that turn the lines a into
// the lines b, ascending, none empty, at least one common line between two of them. Equal texts
// have none. The edits go into the bytes that humans approve, so they are specified to the last
// tie and never change.
//
// # Specification
//
// A text is its lines; each ends after its LF, the last may lack one. Two lines
// are equal when their bytes are, LF included. The answer is a list of edits:
// the old lines [OldStart,OldEnd) are replaced by the new lines
// [NewStart,NewEnd), counted from 0. Everything else is common. For example
//
//	old   0 a   1 b   2 c   3 a   4 b   5 b   6 a
//	new   0 c   1 b   2 a   3 b   4 a   5 c
//
// gives
//
//	old [0,1) → new [0,1)
//	old [2,3) → new [2,2)
//	old [5,6) → new [4,4)
//	old [7,7) → new [5,6)
//
// Step 1, trim. Take off the longest common prefix, then the longest common
// suffix of what is left. N old and M new lines remain. When one of the numbers
// is 0 the rest is one edit, or none when both are.
//
// Step 2, bound. D is the least number of deleted and inserted lines that turns
// the rest's old lines into its new ones, N+M less twice the length of their
// longest common subsequence. When D is more than
//
//	Dmax = min(4096, floor(2^29 / (N+M)))
//
// the rest is one edit. This is decided here only, never in step 3.
//
// Step 3, divide. The rest is a box. A box is first trimmed as in step 1; when
// one side is then empty it is one edit, or none. Otherwise a point of the box
// divides it in two, the lines before it and those after it on both sides, and
// each part is a box again. The edits are those of the first part, then those of
// the second.
//
// The point comes from the linear-space refinement of E. W. Myers, "An O(ND)
// Difference Algorithm and Its Variations", Algorithmica 1 (1986), section 4b.
// In a trimmed box of n old and m new lines the point (x,y) stands before old
// line x and new line y, on the diagonal k = x-y; let delta = n-m. A step to
// (x+1,y) deletes and one to (x,y+1) inserts. A step to (x+1,y+1) is free, where
// old line x equals new line y. Only points with 0 <= x <= n and 0 <= y <= m
// exist. F(d,k) is the point with the greatest x on diagonal k among those that
// can be reached from (0,0) with exactly d deletions and insertions and any free
// steps; R(d,k) is the one with the least x among those from which (n,m) can be
// reached so. For d = 0, 1, 2 and so on:
//
//   - Forward. For k = -d, -d+2 and so on up to d: when delta is odd, and R(d-1,k)
//     exists and its x is not greater than that of F(d,k), the point is F(d,k),
//     and the box's D is 2d-1.
//   - Backward. For k = delta-d, delta-d+2 and so on up to delta+d: when delta is
//     even, and F(d,k) exists and its x is not less than that of R(d,k), the point
//     is R(d,k), and the box's D is 2d.
//
// The first that holds ends the search. It never matters how F and R were
// reached, so no other tie is left to settle.
//
// Step 4, merge. Edits with no common line between them become one; in it the
// deletions are written before the insertions.
//
// Nothing else is done: no heuristics, no sliding of edits along equal lines.
//
// # Cost
//
// Memory grows with N+M, depth of recursion with log Dmax. Time grows with
// N+M times D and is bounded by Dmax, whatever the texts are.
func DiffLines(a, b [][]byte) []Edit {
	prefix, suffix := common(a, b, bytes.Equal)
	a, b = a[prefix:len(a)-suffix], b[prefix:len(b)-suffix]
	switch {
	case len(a) == 0 && len(b) == 0:
		return nil
	case len(a) == 0 || len(b) == 0:
		return []Edit{{prefix, prefix + len(a), prefix, prefix + len(b)}}
	}
	all := len(a) + len(b) // D is not more than that, and less room is needed
	s := search{room: rooms.Get().(*room), offset: prefix, limit: min(maxEdits, maxWork/all, all)}
	defer rooms.Put(s.room)
	s.number(a, b)
	s.divide(Edit{0, len(a), 0, len(b)})
	return s.edits
}

// rooms are used again: with many files, most of the memory would be theirs.
var rooms = sync.Pool{New: func() any { return new(room) }}

// common returns the lengths of the longest common prefix of a and b, and of
// the longest common suffix of what is left.
func common[Line any](a, b []Line, equal func(Line, Line) bool) (prefix, suffix int) {
	short := min(len(a), len(b))
	for prefix < short && equal(a[prefix], b[prefix]) {
		prefix++
	}
	for suffix < short-prefix && equal(a[len(a)-1-suffix], b[len(b)-1-suffix]) {
		suffix++
	}
	return prefix, suffix
}

// Lines splits data after each LF. The last line may lack its LF; empty data has
// no lines. The lines are parts of data, nothing is copied.
func Lines(data []byte) [][]byte {
	lines := make([][]byte, 0, bytes.Count(data, []byte("\n"))+1)
	for line := range bytes.Lines(data) {
		lines = append(lines, line)
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

// A LineHunk is a run of edits and the common lines around them: OldLines lines from
// OldStart of the old text stand against NewLines lines from NewStart of the new
// one. Lines count from 0.
type LineHunk struct {
	OldStart, OldLines, NewStart, NewLines int
	Edits                                  []Edit
}

// LineHunks groups the edits of DiffLines between texts of oldLen and newLen lines as git
// does: each hunk has up to context common lines before and after, and edits
// with at most 2*context common lines between them share one. A context below 0
// is 0.
func LineHunks(edits []Edit, oldLen, newLen, context int) []LineHunk {
	context = max(context, 0)
	var hunks []LineHunk
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].OldStart-edits[n-1].OldEnd-context <= context {
			n++
		}
		hunks = append(hunks, newHunk(edits[:n:n], oldLen, newLen, context))
		edits = edits[n:]
	}
	return hunks
}

func newHunk(edits []Edit, oldLen, newLen, context int) LineHunk {
	first, last := edits[0], edits[len(edits)-1]
	before := min(context, first.OldStart, first.NewStart)
	after := min(context, oldLen-last.OldEnd, newLen-last.NewEnd)
	h := LineHunk{OldStart: first.OldStart - before, NewStart: first.NewStart - before, Edits: edits}
	h.OldLines = last.OldEnd + after - h.OldStart
	h.NewLines = last.NewEnd + after - h.NewStart
	return h
}
