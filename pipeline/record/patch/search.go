package patch

// A search divides boxes until they are edits. A box is an Edit in the numbering
// of old and new, which is that of the texts less offset.
type search struct {
	*room
	offset int    // lines before old[0] and new[0] in the texts
	limit  int    // edit scripts longer than this are not looked for
	edits  []Edit // what was found, in the texts' numbering
}

// room is the memory of a search.
type room struct {
	old, new []int32 // the lines as numbers
	slots    []int32 // of the table that numbers them
	fwd, bwd []int   // the diagonals' reach, see reach
}

// divide is steps 2 to 4 of the specification. No part of a box has a longer
// script than the box, so the limit can only stop it at the first.
func (s *search) divide(box Edit) {
	old, new := s.old[box.OldStart:box.OldEnd], s.new[box.NewStart:box.NewEnd]
	prefix, suffix := common(old, new, func(a, b int32) bool { return a == b })
	box = Edit{box.OldStart + prefix, box.OldEnd - suffix, box.NewStart + prefix, box.NewEnd - suffix}
	x, y, ok := s.split(box)
	if !ok {
		s.add(box)
		return
	}
	x, y = box.OldStart+x, box.NewStart+y
	s.divide(Edit{box.OldStart, x, box.NewStart, y})
	s.divide(Edit{x, box.OldEnd, y, box.NewEnd})
}

// add records a box as an edit, merged with the last one if they touch.
func (s *search) add(box Edit) {
	e := Edit{box.OldStart + s.offset, box.OldEnd + s.offset, box.NewStart + s.offset, box.NewEnd + s.offset}
	if e.OldStart == e.OldEnd && e.NewStart == e.NewEnd {
		return
	}
	if last := len(s.edits) - 1; last >= 0 && s.edits[last].OldEnd == e.OldStart && s.edits[last].NewEnd == e.NewStart {
		s.edits[last].OldEnd, s.edits[last].NewEnd = e.OldEnd, e.NewEnd
		return
	}
	s.edits = append(s.edits, e)
}

// split finds the point that divides a trimmed box, counted from the box's
// start. There is none when a side is empty or the script would be too long.
func (s *search) split(box Edit) (x, y int, ok bool) {
	if box.OldStart == box.OldEnd || box.NewStart == box.NewEnd {
		return 0, 0, false
	}
	r := s.reach(box)
	for d := 0; 2*d-1 <= s.limit; d++ {
		if x, y, ok := r.forward(d); ok {
			return x, y, true
		}
		if 2*d > s.limit {
			break
		}
		if x, y, ok := r.backward(d); ok {
			return x, y, true
		}
	}
	return 0, 0, false
}

// A reach is how far the search of one box has come from its two corners, with
// the names of the package comment. Diagonals are counted from the corners': F
// on diagonal k is fwd[mid+k], R is bwd[mid+k-delta], both as x. Beyond the
// diagonals in use stands a value that loses against every real one.
type reach struct {
	a, b     []int32
	delta    int
	fwd, bwd []int
	mid      int
}

// reach begins the search of a box. The diagonals' room is shared by all boxes.
func (s *search) reach(box Edit) reach {
	mid := (s.limit+1)/2 + 1
	if n := 2*mid + 1; len(s.fwd) < n {
		s.fwd, s.bwd = make([]int, n), make([]int, n)
	}
	a, b := s.old[box.OldStart:box.OldEnd], s.new[box.NewStart:box.NewEnd]
	return reach{a: a, b: b, delta: len(a) - len(b), fwd: s.fwd, bwd: s.bwd, mid: mid}
}

// forward computes F(d,k) for all k and returns the point at which it meets R.
// A point that a step takes out of the box stays out of it and meets nothing,
// for the script would have been shorter along the box's edge.
func (r *reach) forward(d int) (x, y int, met bool) {
	n, m := len(r.a), len(r.b)
	f := r.fwd
	f[r.mid-d-1], f[r.mid+d+1] = -1, -1
	for k, last := diagonals(d, m, n); k <= last; k += 2 {
		at := r.mid + k
		x := max(f[at-1]+1, f[at+1])
		y := x - k
		for x < n && y < m && r.a[x] == r.b[y] {
			x, y = x+1, y+1
		}
		f[at] = x
		other := k - r.delta
		if r.delta&1 != 0 && -d < other && other < d && x >= r.bwd[r.mid+other] {
			return x, y, true
		}
	}
	return 0, 0, false
}

// backward computes R(d,k) for all k and returns the point at which it meets F.
func (r *reach) backward(d int) (x, y int, met bool) {
	n, m := len(r.a), len(r.b)
	w := r.bwd
	w[r.mid-d-1], w[r.mid+d+1] = n+1, n+1
	for k, last := diagonals(d, n, m); k <= last; k += 2 {
		at := r.mid + k
		x := min(w[at-1], w[at+1]-1)
		y := x - k - r.delta
		for x > 0 && y > 0 && r.a[x-1] == r.b[y-1] {
			x, y = x-1, y-1
		}
		w[at] = x
		other := k + r.delta
		if r.delta&1 == 0 && -d <= other && other <= d && x <= r.fwd[r.mid+other] {
			return x, y, true
		}
	}
	return 0, 0, false
}

// diagonals returns the first and last of -d, -d+2, ..., d between -low and
// high.
func diagonals(d, low, high int) (first, last int) {
	first, last = -d, d
	if d > low {
		first = -low + (d-low)&1
	}
	if d > high {
		last = high - (d-high)&1
	}
	return first, last
}
