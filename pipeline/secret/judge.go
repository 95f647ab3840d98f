package secret

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
)

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
