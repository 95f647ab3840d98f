package secret

import (
	"bytes"
	"sort"
)

// A view is one way to read a document: as it stands, with its lines joined,
// or with something decoded. Its bytes stand for ranges of its parent's, in
// the end for ranges of the document.
type view struct {
	text   []byte
	pieces []piece // sorted; none: byte for byte, from the first
	parent *view   // nil: the document
	joints []joint
	depth  int  // how many encodings were taken off
	loose  bool // what lies between its pieces belongs to others
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

// root returns the view of the document itself that v was made from, and the
// range of it that v[lo:hi] stands for; empty where it stands for none.
func (v *view) root(lo, hi int) (*view, int, int) {
	for ; v.parent != nil && lo < hi; v = v.parent {
		lo, hi = v.up(lo, hi)
	}
	return v, lo, hi
}

// ranges calls use for the document's ranges that v[lo:hi] stands for, v being
// a view of the document itself.
func (v *view) ranges(lo, hi int, use func(from, to int)) {
	switch {
	case v.pieces == nil:
		use(lo, hi)
	case !v.loose:
		use(v.up(lo, hi))
	default:
		for _, p := range v.within(lo, hi) {
			use(p.covers(lo, hi))
		}
	}
}

// within returns the pieces that [lo, hi) touches.
func (v *view) within(lo, hi int) []piece {
	first := sort.Search(len(v.pieces), func(i int) bool { return int(v.pieces[i].at+v.pieces[i].size) > lo })
	after := sort.Search(len(v.pieces), func(i int) bool { return int(v.pieces[i].at) >= hi })
	return v.pieces[first:max(first, after)]
}

func (v *view) up(lo, hi int) (int, int) {
	touched := v.within(lo, hi)
	if len(touched) == 0 {
		return 0, 0
	}
	from, _ := touched[0].covers(lo, hi)
	_, to := touched[len(touched)-1].covers(lo, hi)
	return from, to
}

// covers returns the parent's range for view bytes lo to hi, cut to the piece.
func (p piece) covers(lo, hi int) (int, int) {
	if p.step == 0 {
		return int(p.from), int(p.from + p.over)
	}
	lo, hi = max(lo-int(p.at), 0), min(hi-int(p.at), int(p.size))
	return int(p.from) + lo*int(p.step), min(int(p.from)+hi*int(p.step), int(p.from+p.over))
}

// spans reports whether view[lo:hi] goes across a joint, and whether all joints
// in it are firm.
func (v *view) spans(lo, hi int) (any, firm bool) {
	i := sort.Search(len(v.joints), func(i int) bool { return int(v.joints[i].at) > lo })
	firm = true
	for ; i < len(v.joints) && int(v.joints[i].at) < hi; i++ {
		any, firm = true, firm && v.joints[i].firm
	}
	return any, any && firm
}

// joined reads v with its lines run together, as a secret that was split over
// them is put together again: without indentation, and without the quotes and
// operators that a string literal is continued with. nil where v is one line.
func joined(v *view) *view {
	if bytes.IndexByte(v.text, '\n') < 0 {
		return nil
	}
	out := &view{parent: v, depth: v.depth, text: make([]byte, 0, len(v.text)), joints: []joint{}}
	var before line
	for at := 0; at < len(v.text); {
		size := bytes.IndexByte(v.text[at:], '\n')
		if size < 0 {
			size = len(v.text) - at
		}
		if next := newLine(v.text, at, at+size); next.from < next.to {
			before = out.join(v.text, before, next)
		}
		at += size + 1
	}
	out.copied(v.text[before.from:before.to], before.from)
	return out
}

// A line is a part of a text without the white space around it. Where code
// continues a string on it or after it, it opens at open and closes at shut.
type line struct {
	from, to   int
	open, shut int
	opens      bool
	ends       ending
}

func newLine(text []byte, from, to int) line {
	l := line{from: skip(text[:to], from), to: from + back(text[from:to], to-from)}
	if l.from < l.to {
		l.from += comment(text[l.from:l.to])
		l.open, l.opens = continues(text, l.from, l.to)
		l.shut, l.ends = shutting(text, l.from, l.to)
	}
	return l
}

// join adds the line before, now that the one after it is known, and returns
// that as it is to be added.
func (v *view) join(text []byte, before, next line) line {
	firm := before.ends == continued || before.ends == quoted && next.opens
	if firm {
		before.to = before.shut
		if next.opens {
			next.from = next.open
		}
	}
	if before.from < before.to {
		v.copied(text[before.from:before.to], before.from)
	}
	if next.from > next.to {
		next.from = next.to
	}
	v.joints = append(v.joints, joint{int32(len(v.text)), firm})
	return next
}

// ending says how a line ends: with nothing special, with a closing quote, or
// with a backslash.
type ending int

const (
	plain ending = iota
	quoted
	continued
)

// continues returns where a line's text begins if it goes on with the string of
// the line before: after a quote, or an operator and a quote.
func continues(text []byte, from, to int) (at int, opens bool) {
	at = from
	if at < to && isOperator(text[at]) {
		at = skip(text[:to], at+1)
	}
	if at < to && isQuote(text[at]) {
		return at + 1, true
	}
	return from, false
}

// shutting returns where a line's text ends if the next line goes on with it.
func shutting(text []byte, from, to int) (end int, how ending) {
	if text[to-1] == '\\' {
		return from + back(text[from:to], to-1-from), continued
	}
	end = to
	if isOperator(text[end-1]) {
		end = from + back(text[from:to], end-1-from)
	}
	if end > from && isQuote(text[end-1]) {
		return end - 1, quoted
	}
	return to, plain
}

// comment is the length of a comment's leader, as every line of a broken
// comment has one.
func comment(line []byte) int {
	for _, leader := range []string{"// ", "# ", "* "} {
		if bytes.HasPrefix(line, []byte(leader)) {
			return len(leader)
		}
	}
	return 0
}

// space is white space within a line.
const space = " \t\r\v\f"

func skip(line []byte, at int) int { return len(line) - len(bytes.TrimLeft(line[at:], space)) }

func back(line []byte, end int) int { return len(bytes.TrimRight(line[:end], space)) }

func isQuote(c byte) bool    { return c == '"' || c == '\'' || c == '`' }
func isOperator(c byte) bool { return c == '+' || c == '.' || c == '&' }

// around copies text[from:to] with barriers for the hidden spans in it.
func (v *view) around(text []byte, from, to int, hidden []span) {
	for _, h := range hidden {
		v.copied(text[from:h.start], from)
		v.stands([]byte{barrier}, h.start, h.end)
		from = h.end
	}
	v.copied(text[from:to], from)
}
