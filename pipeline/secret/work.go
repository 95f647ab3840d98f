package secret

import (
	"bytes"
	"slices"
)

// What a scan may cost, for each byte of the document and to begin with.
// All are counted, never timed, so equal inputs have equal outcomes.
const (
	maxRounds    = 4
	bytesPerByte = 32 // decoded
	stepsPerByte = 64 // of automata
	exprsPerByte = 4  // read by regular expressions
	freeWork     = 1 << 20
)

// work is one round of a search.
type work struct {
	set     *ruleset
	engine  *engine
	index   *index
	source  source
	bytes   int // budgets
	steps   int
	exprs   int
	roots   []*view
	found   map[*view][]span // by view of the document itself, as ranges of it
	secrets []known
}

func newWork(src source, set *ruleset, hidden []span) *work {
	w := &work{set: set, source: src, roots: src.views(hidden), found: map[*view][]span{}}
	size := 0
	for _, v := range w.roots {
		size += len(v.text)
	}
	w.bytes, w.steps, w.exprs = freeWork+bytesPerByte*size, freeWork+stepsPerByte*size, freeWork+exprsPerByte*size
	return w
}

// spend takes n from a budget, and reports whether there was enough.
func (w *work) spend(budget *int, n int) bool {
	if *budget < n {
		return false
	}
	*budget -= n
	return true
}

// match finds known values in all views.
func (w *work) match(views []*view, values knownValues) {
	if len(values.list) == 0 {
		return
	}
	for _, v := range views {
		x := values.raw
		if v.depth > 0 {
			x = values.encoded
		}
		x.scan(v.text, func(k known, start, end int) {
			if k.head != nil && bytes.HasSuffix(v.text[:start], k.head) {
				start -= len(k.head)
			}
			if k.tail != nil && bytes.HasPrefix(v.text[end:], k.tail) {
				end += len(k.tail)
			}
			w.add(v, start, end, k.kind)
		})
	}
}

// add records that view[start:end] is to be redacted.
func (w *work) add(v *view, start, end int, kind string) {
	if root, from, to := v.root(start, end); from < to {
		w.found[root] = append(w.found[root], span{start: from, end: to, kind: kind})
	}
}

// spans returns what was found as ranges of the document. Their ids count from
// id.
func (w *work) spans(id int) []span {
	var out []span
	for _, v := range w.roots {
		for _, s := range merge(w.found[v]) {
			id++
			v.ranges(s.start, s.end, func(from, to int) {
				out = append(out, span{start: from, end: to, kind: s.kind, id: id})
			})
		}
	}
	return merge(out)
}

// secret is add for a value that is then looked for in the whole document.
func (w *work) secret(v *view, start, end int, kind string) {
	w.add(v, start, end, kind)
	w.secrets = append(w.secrets, pieces(slices.Clone(v.text[start:end]), kind)...)
}

// unscanned gives up on view[start:end]: it is redacted whole.
func (w *work) unscanned(v *view, start, end int) { w.add(v, start, end, KindUnscanned) }

// A source is a document that is searched.
type source interface {
	// views reads the document with the hidden spans as barriers. What it
	// returns must depend on nothing else of them than where they stand.
	views(hidden []span) []*view
	// markers are the spans that are hidden from the beginning: redacted when
	// the document came, or not to be searched.
	markers() []span
	// clip cuts spans to what may be replaced.
	clip(spans []span) []span
	// whole is everything that may be replaced.
	whole() []span
	// path is the file that an offset belongs to, or "".
	path(at int) string
}

const maxDocument = 1 << 30

// plainText is a document without a form of its own.
type plainText struct {
	set  *ruleset
	text []byte
}

func (t plainText) views(hidden []span) []*view {
	if len(t.text) > maxDocument {
		return nil
	}
	v := &view{text: t.text}
	if len(hidden) > 0 {
		v = &view{}
		v.around(t.text, 0, len(t.text), hidden)
	}
	return []*view{v}
}

func (t plainText) markers() []span {
	if len(t.text) > maxDocument {
		return t.whole()
	}
	return markers(t.text, 0, t.set.kinds)
}

func (t plainText) whole() []span { return []span{{end: len(t.text), kind: KindUnscanned}} }

func (t plainText) path(at int) string { return "" }

// clip widens spans to whole characters, so that valid UTF-8 stays valid.
func (t plainText) clip(spans []span) []span {
	for i, s := range spans {
		spans[i].start, spans[i].end = widen(t.text, s.start, s.end, 0, len(t.text))
	}
	return spans
}
