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

// reach is how far a match of unbounded length is followed, and how far around
// a keyword a rule is tried whose matches need not begin with it.
const (
	reach     = 4096
	nearReach = 2048
	far       = 512

	// How far before the end of a line a secret begins that goes on behind it.
	jointReach = 1024

	fullLine = 60

	nearPart    = 8 << 10
	nearOverlap = 1 << 10
)

func (r *rule) matcher(v *view) *matcher {
	if v.joints != nil {
		return &r.loose
	}
	return &r.strict
}

// A window is a part of a view in which a rule is tried everywhere.
type window struct{ start, end int }

// detect runs the rules over a view. Where it wakes rules, the view is read
// again from the beginning, so that the outcome does not depend on which rules
// were awake.
func (w *work) detect(v *view) {
	steps, exprs, secrets := w.steps, w.exprs, len(w.secrets)
	root := v
	for root.parent != nil {
		root = root.parent
	}
	found := len(w.found[root])
	w.index = w.set.current.Load()
	for {
		asleep := w.scan(v)
		if len(asleep) == 0 {
			return
		}
		w.index = w.set.wake(w.index, asleep)
		w.steps, w.exprs, w.secrets, w.found[root] = steps, exprs, w.secrets[:secrets], w.found[root][:found]
	}
}

// scan runs the rules that are awake, and returns the literals of those that
// are not, though the view has them. Where the budget ends, so does the scan,
// and the rest counts as unscanned.
func (w *work) scan(v *view) (asleep map[uint16]bool) {
	clear(w.engine.until)
	clear(w.engine.tried)
	x := w.index
	near := map[int][]window{}
	var begins, ends []int
	stopped := -1
	x.literals.scan(v.text, func(id uint16, start, end int) bool {
		if x.asleep[id] != nil {
			if asleep == nil {
				asleep = map[uint16]bool{}
			}
			asleep[id] = true
		}
		if asleep != nil {
			return true
		}
		for _, i := range x.led[id] {
			if !w.try(v, i, start) {
				stopped = start
				return false
			}
		}
		for _, i := range x.near[id] {
			near[i] = extend(near[i], start-nearReach, min(len(v.text), end+nearReach))
		}
		switch id {
		case x.begin:
			begins = append(begins, start)
		case x.end:
			ends = append(ends, start)
		}
		return true
	})
	if asleep != nil {
		return asleep
	}
	if stopped >= 0 {
		w.unscanned(v, stopped, len(v.text))
	}
	for _, i := range x.always {
		near[i] = []window{{0, len(v.text)}}
	}
	for i := range x.rules {
		w.tryNear(v, i, near[i])
	}
	if w.set.blocks && v.joints == nil {
		w.blocks(v, begins, ends)
	}
	return nil
}

func extend(list []window, start, end int) []window {
	start = max(start, 0)
	if n := len(list); n > 0 && list[n-1].end >= start {
		list[n-1].end = max(list[n-1].end, end)
		return list
	}
	return append(list, window{start, end})
}

// try runs rule i at a literal that its matches begin with; false if the
// budget is spent.
func (w *work) try(v *view, i, start int) bool {
	if start < w.engine.until[i] || start < w.engine.tried[i] || !v.crosses(start, start+jointReach) {
		return true
	}
	w.engine.tried[i] = start + 1
	r := w.index.rules[i]
	m := r.matcher(v)
	end, maybe := w.engine.automaton(i, m, false).run(v.text, start, min(len(v.text), start+reach))
	if !w.spend(&w.steps, end-start+1) {
		return false
	}
	if !maybe || !v.crosses(start, end) || r.bound && v.inWord(start) {
		return true
	}
	// The expression must see what follows the match.
	end = min(len(v.text), end+4)
	if !w.spend(&w.exprs, cost(end-start)) {
		return false
	}
	if loc := m.match(v.text, start, end); loc != nil {
		w.engine.until[i] = loc[1]
		return w.judge(v, r, loc, end)
	}
	return true
}

// cost is what an expression is charged for a text: those that go far are
// those that follow many alternatives.
func cost(size int) int {
	if size > far {
		return 4 * size
	}
	return size + 8
}

// tryNear runs rule i in the windows, a part at a time; parts overlap.
func (w *work) tryNear(v *view, i int, windows []window) {
	for _, win := range windows {
		for at := win.start; at < win.end; at += nearPart - nearOverlap {
			part := window{at, min(win.end, at+nearPart)}
			if !w.tryPart(v, i, part) {
				w.unscanned(v, at, win.end)
				break
			}
			if part.end == win.end {
				break
			}
		}
	}
}

func (w *work) tryPart(v *view, i int, part window) bool {
	r := w.index.rules[i]
	m := r.matcher(v)
	text := v.text[part.start:part.end]
	if !v.crosses(part.start, part.end) {
		return true
	}
	if !w.spend(&w.steps, len(text)) {
		return false
	}
	if _, maybe := w.engine.automaton(i, m, true).run(text, 0, len(text)); !maybe {
		return true
	}
	if !w.spend(&w.exprs, 2*cost(len(text))) {
		return false
	}
	for _, loc := range m.anywhere().FindAllSubmatchIndex(text, -1) {
		for j := range loc {
			if loc[j] >= 0 {
				loc[j] += part.start
			}
		}
		if !w.judge(v, r, loc, part.end) {
			return false
		}
	}
	return true
}
