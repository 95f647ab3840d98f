package secret

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kinds of findings beside the ids of gitleaks' rules.
const (
	KindKnown     = "known-value" // a value given to Knowing
	KindUnscanned = "unscanned"   // beyond the bounds of a scan
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
			last := &out[n-1]
			if rank(s.kind) < rank(last.kind) {
				last.kind = s.kind
			}
			last.end = max(last.end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
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

func widen(text []byte, start, end, least, most int) (int, int) {
	for range utf8.UTFMax - 1 {
		if start > least && !utf8.RuneStart(text[start]) {
			start--
		}
		if end < most && !utf8.RuneStart(text[end]) {
			end++
		}
	}
	return start, end
}

// generic rules describe what stands beside a value more than the value.
// Across joined lines they would take in what follows any short one.
var generic = map[string]bool{
	"generic-api-key": true, "hashicorp-tf-password": true, "password-with-marks": true,
	"curl-auth-header": true, "curl-auth-user": true, "nuget-config-password": true, "jwt-base64": true,
	"sourcegraph-access-token": true, "random-value": true, "hexadecimal-secret": true, "docker-config-auth": true,
}

// kindOf keeps of a rule's id what a marker may show.
func kindOf(id string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return ' '
	}, id)
	kind := strings.Join(strings.Fields(plain), "-")
	return strings.TrimRight(kind[:min(len(kind), maxKind)], "-")
}

// The rules that blocks and manifests stand in for.
const (
	privateKey       = "private-key"
	kubernetesSecret = "kubernetes-secret-yaml"
)

// markers finds the markers of known kinds in text. Anything else in their
// form is text like any other: it could hold a secret.
func markers(text []byte, from int, kinds map[string]bool) []span {
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
		if !ok || !kinds[kind] {
			rest, at = rest[1:], at+1
			continue
		}
		n := len(marker(kind))
		out = append(out, span{start: at, end: at + n, kind: kind, old: true})
		rest, at = rest[n:], at+n
	}
}
