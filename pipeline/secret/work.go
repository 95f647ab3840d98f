package secret

import (
	"bytes"
	"slices"
)

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

// What a scan may cost, for each byte of the document and to begin with.
// All are counted, never timed, so equal inputs have equal outcomes.
const (
	maxRounds    = 4
	maxDocument  = 1 << 30
	bytesPerByte = 32 // decoded
	stepsPerByte = 64 // of automata
	exprsPerByte = 4  // read by regular expressions
	freeWork     = 1 << 20
)

// work is one round of a search.
type work struct {
	finder  *Finder
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

// search returns what to redact, sorted and disjoint, old markers included,
// and the values of the secrets. It repeats until a round finds nothing: the
// redacted document has no secret left that this Finder sees, so redacting it
// again changes nothing.
func (f *Finder) search(src source) (hidden []span, secrets []known) {
	hidden = src.markers()
	for round := range maxRounds {
		w := f.round(src, hidden)
		fresh := without(merge(src.clip(w.spans(round<<32))), hidden)
		if len(fresh) == 0 {
			return hidden, secrets
		}
		hidden = append(hidden, fresh...)
		slices.SortFunc(hidden, func(a, b span) int { return a.start - b.start })
		secrets = append(secrets, w.secrets...)
	}
	hidden = append(hidden, without(src.whole(), hidden)...)
	slices.SortFunc(hidden, func(a, b span) int { return a.start - b.start })
	return hidden, secrets
}

func (f *Finder) round(src source, hidden []span) *work {
	set := f.rules()
	e := set.engines.take(set)
	defer set.engines.give(e)
	views := src.views(hidden)
	w := &work{finder: f, set: set, engine: e, source: src, roots: views, found: map[*view][]span{}}
	size := 0
	for _, v := range views {
		size += len(v.text)
	}
	w.bytes, w.steps, w.exprs = freeWork+bytesPerByte*size, freeWork+stepsPerByte*size, freeWork+exprsPerByte*size
	views = w.expand(slices.Clip(views))
	for _, v := range views {
		w.detect(v)
	}
	if f.known != nil {
		w.match(views, f.known, f.knownEncoded)
	}
	if len(w.secrets) > 0 {
		w.match(views, newExact(w.secrets, false), newExact(w.secrets, true))
	}
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

// expand adds the views in which lines are joined or something is decoded.
func (w *work) expand(views []*view) []*view {
	for _, v := range slices.Clip(views) {
		if j := joined(v); j != nil {
			views = append(views, j)
		}
	}
	for i := 0; i < len(views); i++ {
		v := views[i]
		if v.depth == maxDepth {
			continue
		}
		made := []*view{w.decoded(v)}
		if v.joints == nil {
			made = append(made, w.unescaped(v), w.wide(v))
		}
		for _, m := range made {
			if m != nil && len(m.text) > 0 {
				views = append(views, m)
			}
		}
	}
	return views
}

// match finds known values in all views.
func (w *work) match(views []*view, raw, encoded *exact) {
	for _, v := range views {
		x := raw
		if v.depth > 0 {
			x = encoded
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
