package linediff

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
