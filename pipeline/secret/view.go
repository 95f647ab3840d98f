package secret

import "sort"

// A view is one way to read a document: as it stands, with its lines joined,
// or with something decoded. Its bytes stand for ranges of its parent's, in
// the end for ranges of the document.
type view struct {
	text   []byte
	pieces []piece // sorted; none: byte for byte, from the first
	parent *view   // nil: the document
	joints []joint
	depth  int // how many encodings were taken off
}

// A piece of a view's text stands for a piece of its parent's: byte i for the
// step bytes from i*step on, or, with a step of 0, every byte for all of it.
type piece struct {
	at, size   int32 // in the view
	from, over int32 // in the parent
	step       int32
}

// A joint is a place in a joined view where a line ended. It is firm where
// code says that the text goes on, as a closing and an opening quote do.
type joint struct {
	at   int32
	firm bool
}

// barrier stands in a view for what is redacted already.
const barrier = 0

// copied adds parent bytes as they are.
func (v *view) copied(text []byte, from int) {
	if len(text) == 0 {
		return
	}
	at, n := int32(len(v.text)), int32(len(text))
	v.text = append(v.text, text...)
	if last := len(v.pieces) - 1; last >= 0 {
		p := &v.pieces[last]
		if p.step == 1 && p.at+p.size == at && p.from+p.over == int32(from) {
			p.size, p.over = p.size+n, p.over+n
			return
		}
	}
	v.pieces = append(v.pieces, piece{at, n, int32(from), n, 1})
}

// stands adds text that as a whole stands for a range of the parent.
func (v *view) stands(text []byte, from, to int) {
	v.pieces = append(v.pieces, piece{int32(len(v.text)), int32(len(text)), int32(from), int32(to - from), 0})
	v.text = append(v.text, text...)
}

// gap separates what does not belong together.
func (v *view) gap() { v.text = append(v.text, '\n') }

// source returns the document's range that view[lo:hi] stands for; empty where
// it stands for none.
func (v *view) source(lo, hi int) (int, int) {
	for w := v; w != nil && lo < hi; w = w.parent {
		if w.pieces != nil {
			lo, hi = w.up(lo, hi)
		}
	}
	return lo, hi
}

func (v *view) up(lo, hi int) (int, int) {
	first := sort.Search(len(v.pieces), func(i int) bool { return int(v.pieces[i].at+v.pieces[i].size) > lo })
	after := sort.Search(len(v.pieces), func(i int) bool { return int(v.pieces[i].at) >= hi })
	if first >= after {
		return 0, 0
	}
	from, _ := v.pieces[first].covers(lo, lo+1)
	_, to := v.pieces[after-1].covers(hi-1, hi)
	return from, to
}

// covers returns the parent's range for view bytes lo to hi, cut to the piece.
func (p piece) covers(lo, hi int) (int, int) {
	if p.step == 0 {
		return int(p.from), int(p.from + p.over)
	}
	lo, hi = max(lo-int(p.at), 0), min(hi-int(p.at), int(p.size))
	return int(p.from) + lo*int(p.step), int(p.from) + hi*int(p.step)
}

// spans tells whether view[lo:hi] goes across a joint, and whether all joints
// in it are firm.
func (v *view) spans(lo, hi int) (any, firm bool) {
	i := sort.Search(len(v.joints), func(i int) bool { return int(v.joints[i].at) > lo })
	firm = true
	for ; i < len(v.joints) && int(v.joints[i].at) < hi; i++ {
		any, firm = true, firm && v.joints[i].firm
	}
	return any, any && firm
}
