package secret

import (
	"slices"
	"sort"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
)

// Diff returns a Git diff with its secrets redacted: in names, in added,
// removed and context lines, each side read with the line prefixes taken off,
// and in binary sections, whose payload becomes one marker line. Line prefixes,
// hunk headers and ids stay. The result is for reading; it need not apply.
//
// The diff must be whole: where it is cut off, the beginning of a secret may
// not be recognised.
func (f *Finder) Diff(diff []byte) []byte {
	spans, _ := f.search(newDiffText(f.rules(), diff))
	if len(spans) == 0 {
		return diff
	}
	return render(diff, spans)
}

// diffText is a diff as a document to be searched, and beside it, for Patch,
// content that the diff does not show.
type diffText struct {
	*diffReader
	set   *ruleset
	data  [][]byte // of sections
	taken []span   // redacted without being searched
}

func newDiffText(set *ruleset, diff []byte) *diffText {
	d := &diffText{set: set, diffReader: &diffReader{text: diff}}
	if len(diff) > maxDocument {
		d.taken = []span{{end: len(diff), kind: KindUnscanned}}
		return d
	}
	d.diffReader = readDiff(diff)
	d.unpack()
	d.byName()
	return d
}

// unpack decodes the binary sections. Their content may be twice as large as
// the diff; what is more, or not as it should be, is not searched but taken.
func (d *diffText) unpack() {
	left := 2*len(d.text) + freeWork
	for _, s := range d.sections {
		var data []byte
		if s.from >= 0 && !d.isMarker(s) {
			if s.literal && s.size <= left {
				data, _ = gitpatch.Literal(d.text[s.from:s.to], s.size)
			}
			if data == nil {
				d.taken = append(d.taken, span{start: s.from, end: s.to, kind: KindUnscanned})
			}
		}
		left -= len(data)
		d.data = append(d.data, data)
	}
}

func (d *diffText) isMarker(s section) bool {
	found := markers(d.text[s.from:s.to], s.from, d.set.kinds)
	return len(found) == 1 && found[0].start == s.from && found[0].end == s.to
}

// byName takes the content of files that are secrets by their names.
func (d *diffText) byName() {
	kinds := make([]string, len(d.files))
	for i, f := range d.files {
		if f.path != "" {
			kinds[i] = d.set.names(f.path)
		}
	}
	for _, l := range d.lines {
		if kind := kinds[l.file]; kind != "" && l.role >= context {
			d.taken = append(d.taken, span{start: int(l.from), end: int(l.to), kind: kind})
		}
	}
}

func (d *diffText) markers() []span {
	var out []span
	for _, l := range d.lines {
		out = append(out, markers(d.text[l.from:l.to], int(l.from), d.set.kinds)...)
	}
	return merge(append(out, without(merge(d.taken), out)...))
}

func (d *diffText) whole() []span {
	var out []span
	for _, l := range d.lines {
		out = append(out, span{start: int(l.from), end: int(l.to), kind: KindUnscanned})
	}
	return merge(out)
}

func (d *diffText) path(at int) string {
	i := sort.Search(len(d.lines), func(i int) bool { return int(d.lines[i].to) > at })
	if i == len(d.lines) {
		return ""
	}
	return d.files[d.lines[i].file].path
}

// clip cuts spans to the replaceable parts of the lines they touch. Those of a
// payload cover it whole, as its view does.
func (d *diffText) clip(spans []span) []span {
	var out []span
	for _, s := range spans {
		i := sort.Search(len(d.lines), func(i int) bool { return int(d.lines[i].to) > s.start })
		for ; i < len(d.lines) && int(d.lines[i].from) < s.end; i++ {
			l := d.lines[i]
			if l.role == fixed {
				continue
			}
			from, to := max(s.start, int(l.from)), min(s.end, int(l.to))
			from, to = widen(d.text, from, to, int(l.from), int(l.to))
			out = append(out, span{from, to, s.kind, s.old, s.id})
		}
	}
	return out
}

// views are the names, the lines after and before, and the binary sections.
func (d *diffText) views(hidden []span) []*view {
	out := []*view{
		d.side(hidden, func(l diffLine) bool { return l.role == heading }),
		d.side(hidden, func(l diffLine) bool { return l.role == context || l.role == added }),
	}
	changed := map[int32]bool{}
	for _, l := range d.lines {
		if l.role == removed {
			changed[l.hunk] = true
		}
	}
	if len(changed) > 0 {
		out = append(out, d.side(hidden, func(l diffLine) bool {
			return l.role == removed || l.role == context && changed[l.hunk]
		}))
	}
	for i, s := range d.sections {
		if d.data[i] != nil && len(within(hidden, s.from, s.from+1)) == 0 {
			v := &view{}
			v.stands(d.data[i], s.from, s.to)
			out = append(out, v)
		}
	}
	for _, l := range d.lines {
		if l.role == beside {
			v := &view{}
			v.around(d.text, int(l.from), int(l.to), within(hidden, int(l.from), int(l.to)))
			out = append(out, v)
		}
	}
	return out
}

// side reads the lines that are wanted, with barriers between hunks.
func (d *diffText) side(hidden []span, wanted func(diffLine) bool) *view {
	v := &view{loose: true}
	hunk := int32(-1)
	for _, l := range d.lines {
		if !wanted(l) {
			continue
		}
		if l.hunk != hunk && l.role != heading {
			v.text = append(v.text, barrier, '\n')
			hunk = l.hunk
		}
		for len(hidden) > 0 && hidden[0].end <= int(l.from) {
			hidden = hidden[1:]
		}
		n := 0
		for n < len(hidden) && hidden[n].start < int(l.to) {
			n++
		}
		v.around(d.text, int(l.from), int(l.to), hidden[:n])
		v.gap()
	}
	return v
}

// within returns the spans that touch [from, to).
func within(hidden []span, from, to int) []span {
	lo := sort.Search(len(hidden), func(i int) bool { return hidden[i].end > from })
	hi := sort.Search(len(hidden), func(i int) bool { return hidden[i].start >= to })
	return slices.Clip(hidden[lo:max(lo, hi)])
}
