package linediff

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
