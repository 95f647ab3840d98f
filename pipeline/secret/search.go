package secret

import (
	"maps"
	"slices"
	"strings"
)

// search returns what to redact, sorted and disjoint, old markers included,
// and the values of the secrets. It repeats until a round finds nothing: the
// redacted document has no secret left that is seen here, so redacting it again
// changes nothing.
func search(src source, rules *ruleset, values knownValues) (hidden []span, secrets []known) {
	hidden = src.markers()
	for round := range maxRounds {
		w := newWork(src, rules, hidden)
		w.round(values)
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

// round searches the document once, for values and for what the rules find.
func (w *work) round(values knownValues) {
	w.engine = w.set.engines.Get().(*engine)
	defer w.set.engines.Put(w.engine)
	views := w.expand(slices.Clip(w.roots))
	for _, v := range views {
		w.detect(v)
	}
	w.match(views, values)
	w.match(views, newKnownValues(w.secrets))
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

// reach is how far a match of unbounded length is followed, and how far around
// a keyword a rule is tried whose matches need not begin with it.
const (
	reach     = 4096
	nearReach = 2048
	far       = 512

	// How far before the end of a line a secret begins that goes on behind it.
	jointReach = 1024

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

// detect runs the rules over a view. Where the budget ends, so does that, and the rest counts as unscanned.
func (w *work) detect(v *view) {
	clear(w.engine.until)
	clear(w.engine.tried)
	near := map[int][]window{}
	var begins, ends, data, secrets []int
	set := w.set
	set.literals.scan(v.text, func(id uint16, start, end int) bool {
		for _, i := range set.of[id] {
			r := set.rules[i]()
			if r.leads == nil {
				near[i] = extend(near[i], start-nearReach, min(len(v.text), end+nearReach))
				continue
			}
			for _, at := range r.leadsAt(v.text, set.words[id], start) {
				if !w.try(v, i, at) {
					w.unscanned(v, at, len(v.text))
					return false
				}
			}
		}
		switch id {
		case set.begin:
			begins = append(begins, start)
		case set.end:
			ends = append(ends, start)
		case set.secret:
			secrets = append(secrets, start)
		case set.data[0], set.data[1], set.data[2]:
			data = append(data, end)
		}
		return true
	})
	for _, i := range set.always {
		near[i] = []window{{0, len(v.text)}}
	}
	for _, i := range slices.Sorted(maps.Keys(near)) {
		w.tryNear(v, i, near[i])
	}
	if set.blocks && v.joints == nil {
		w.blocks(v, begins, ends)
	}
	if set.secrets && v.joints == nil {
		w.manifests(v, data, secrets)
	}
}

// leadsAt are the places at which one of a rule's literals begins that has a word at a place.
func (r *rule) leadsAt(text []byte, word string, at int) (starts []int) {
	for _, lead := range r.leads {
		for i := strings.Index(lead, word); i >= 0 && i <= at; {
			if begin := at - i; hasFold(text[begin:], lead) {
				starts = append(starts, begin)
			}
			next := strings.Index(lead[i+1:], word)
			if next < 0 {
				break
			}
			i += 1 + next
		}
	}
	return starts
}

// hasFold reports whether a text begins with a literal in lower case, whatever the case of its ASCII letters.
func hasFold(text []byte, literal string) bool {
	if len(text) < len(literal) {
		return false
	}
	for i := range len(literal) {
		if lower(text[i]) != literal[i] {
			return false
		}
	}
	return true
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
	if start < w.engine.until[i] || start+1 == w.engine.tried[i] || !v.crosses(start, start+jointReach) {
		return true
	}
	w.engine.tried[i] = start + 1
	r := w.set.rules[i]()
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
	r := w.set.rules[i]()
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
