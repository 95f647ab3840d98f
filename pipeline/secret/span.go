package secret

import (
	"cmp"
	"slices"
	"strings"
)

// A span is a range of a document that is redacted; old ones were when it came.
// Parts of one secret on several lines have the same id.
type span struct {
	start, end int
	kind       string
	old        bool
	id         int
}

const (
	opening = "<REDACTED:"
	closing = ">"
	maxKind = 64
)

// merge sorts spans and unites those that overlap, under the most telling kind.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(rank(a.kind), rank(b.kind)), strings.Compare(a.kind, b.kind))
	})
	out := spans[:0]
	for _, s := range spans {
		if s.start >= s.end {
			continue
		}
		if n := len(out); n > 0 && s.start < out[n-1].end {
			out[n-1] = out[n-1].with(s)
			continue
		}
		out = append(out, s)
	}
	return out
}

func (s span) with(t span) span {
	if rank(t.kind) < rank(s.kind) {
		s.kind = t.kind
	}
	s.end = max(s.end, t.end)
	return s
}

// rank orders kinds by how much they say.
func rank(kind string) int {
	switch {
	case kind == KindUnscanned:
		return 3
	case kind == KindKnown:
		return 2
	case generic[kind]:
		return 1
	}
	return 0
}

// without cuts hidden, which is sorted and disjoint, out of spans.
func without(spans, hidden []span) []span {
	var out []span
	for _, s := range spans {
		i, _ := slices.BinarySearchFunc(hidden, s.start, func(h span, at int) int {
			if h.end <= at {
				return -1
			}
			return 1
		})
		for ; i < len(hidden) && hidden[i].start < s.end; i++ {
			if hidden[i].start > s.start {
				cut := s
				cut.end = hidden[i].start
				out = append(out, cut)
			}
			s.start = max(s.start, hidden[i].end)
		}
		if s.start < s.end {
			out = append(out, s)
		}
	}
	return out
}

// render writes text with a marker for every span.
func render(text []byte, spans []span) []byte {
	out := make([]byte, 0, len(text)+16*len(spans))
	at := 0
	for _, s := range spans {
		out = append(out, text[at:s.start]...)
		out = append(out, marker(s.kind)...)
		at = s.end
	}
	return append(out, text[at:]...)
}

func marker(kind string) string { return opening + kind + closing }

// markers finds the markers of known kinds in text. Anything else in their
// form is text like any other: it could hold a secret.
func (set *ruleset) markers(text []byte, from int) []span {
	var out []span
	rest, at := string(text), from
	for {
		i := strings.Index(rest, opening)
		if i < 0 {
			return out
		}
		rest, at = rest[i:], at+i
		kind := rest[len(opening):min(len(rest), len(opening)+maxKind+1)]
		kind, _, ok := strings.Cut(kind, closing)
		if !ok || !set.kinds[kind] {
			rest, at = rest[1:], at+1
			continue
		}
		n := len(marker(kind))
		out = append(out, span{start: at, end: at + n, kind: kind, old: true})
		rest, at = rest[n:], at+n
	}
}
