package secret

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
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

// judge decides whether a match is a secret. end is where the text that the
// rule saw ends; a match that touches it may go on.
func (w *work) judge(v *view, r *rule, loc []int, end int) bool {
	c := candidate{text: v.text, start: loc[0], end: loc[1]}
	c.value, c.until = r.value(loc)
	c.value, c.until = trimmed(v.text, c.value, c.until)
	if v.joints != nil && !w.split(v, r, c) {
		return true
	}
	if c.value == c.until || r.entropy != 0 && entropy(v.text[c.value:c.until]) <= r.entropy {
		return true
	}
	for c.start > 0 && loc[0]-c.start < r.before && isWord(v.text[c.start-1]) {
		c.start--
	}
	if !w.spend(&w.exprs, 2*(c.end-c.start)) {
		return false
	}
	if w.allowed(v, r, &c) {
		return true
	}
	if c.until == end {
		for c.until < len(v.text) && v.text[c.until] > ' ' {
			c.until++
		}
	}
	w.secret(v, c.value, c.until, r.kind)
	return true
}

// split reports whether a match in a joined view is a secret that was split. It
// is not if a joint only brings the next line's words to the end of a value
// that is one without them.
func (w *work) split(v *view, r *rule, c candidate) bool {
	any, firm := v.spans(c.value, c.until)
	if !any || r.generic && !firm {
		return false
	}
	if firm {
		return true
	}
	i, _ := slices.BinarySearchFunc(v.joints, int32(c.start)+1, func(j joint, at int32) int { return cmp.Compare(j.at, at) })
	end := int(v.joints[i].at)
	if !w.spend(&w.exprs, end-c.start) || r.loose.match(v.text, c.start, end) == nil {
		return true
	}
	return v.wrapped(i, c.until)
}

// fullLine is so long that words are broken at its end.
const fullLine = 60

// wrapped reports whether a value looks as if it was broken at joint i because
// the line was full: the line is long, and the value goes on to the end of
// another.
func (v *view) wrapped(i, until int) bool {
	if i > 0 && v.joints[i].at-v.joints[i-1].at < fullLine {
		return false
	}
	_, end := slices.BinarySearchFunc(v.joints, int32(until), func(j joint, at int32) int { return cmp.Compare(j.at, at) })
	return end || until == len(v.text) || isQuote(v.text[until])
}

// trimmed takes newlines and quotes off a value.
func trimmed(text []byte, start, end int) (int, int) {
	const around = "\n\"'`"
	end = start + len(bytes.TrimRight(text[start:end], around))
	return end - len(bytes.TrimLeft(text[start:end], around)), end
}

// inWord reports whether a joined view has a letter or digit before start, on the
// same line. There, loosened rules would begin within words.
func (v *view) inWord(start int) bool {
	if v.joints == nil || start == 0 || !isWord(v.text[start-1]) || v.text[start-1] == '.' || v.text[start-1] == '-' {
		return false
	}
	_, at := slices.BinarySearchFunc(v.joints, int32(start), func(j joint, at int32) int { return cmp.Compare(j.at, at) })
	return !at
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || c == '-' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
}

// allowed asks the allowlists of all rules, then the rule's own.
func (w *work) allowed(v *view, r *rule, c *candidate) bool {
	c.automata = w.engine.conditions
	root, lo, hi := v.root(c.value, c.until)
	root.ranges(lo, hi, func(from, _ int) { c.path = w.source.path(from) })
	for _, lists := range [][]allowlist{w.set.allowed(), r.allowed} {
		for _, a := range lists {
			if a.allows(*c) {
				return true
			}
		}
	}
	return false
}

// entropy is Shannon's, in bits a character, as gitleaks computes it: counted
// in runes, weighed by bytes.
func entropy(text []byte) float64 {
	var ascii [utf8.RuneSelf]int
	other := map[rune]int{}
	for _, r := range string(text) {
		if r < utf8.RuneSelf {
			ascii[r]++
		} else {
			other[r]++
		}
	}
	sum, scale := 0.0, 1/float64(len(text))
	weigh := func(n int) {
		if n > 0 {
			p := float64(n) * scale
			sum -= p * math.Log2(p)
		}
	}
	for _, n := range ascii {
		weigh(n)
	}
	for _, n := range other {
		weigh(n)
	}
	return sum
}
