// Package secret finds secrets in what a patch, a command or a document says,
// and replaces them, so that nothing that looks like one leaves the machine.
//
//	password = "hunter2hunter2"   →   password = "<REDACTED:generic-api-key>"
//
// A Finder runs gitleaks' default rules and those of the repository's own
// .gitleaks.toml, over a text as it stands and as it would read with its lines
// joined or with base64, hexadecimal digits, escapes or UTF-16 decoded, up to
// three times over. A secret that was found is looked for in the whole document
// again. Nothing in the document excuses it: inline gitleaks:allow comments and
// the path a patch chooses count for nothing.
//
// Redacting is stable, and redacting again changes nothing. The work is bounded
// in proportion to the input, and counted, not timed: what it does not cover is
// redacted whole, as <REDACTED:unscanned>.
//
// Everything here is pure: no clock, no environment, no I/O.
package secret

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kinds of findings beside the ids of gitleaks' rules.
const (
	KindKnown     = "known-value" // a value given to Knowing
	KindUnscanned = "unscanned"   // beyond the bounds of a scan
)

// A Finder finds secrets. It may be used by several goroutines at once.
type Finder struct {
	rules               func() *ruleset
	values              []known
	known, knownEncoded *exact
	clean               [sha256.Size]byte // of a diff that Learn found nothing in
}

// A Finding says where a secret is, and never what it is. Start and End are
// offsets in bytes.
type Finding struct {
	Kind       string
	Start, End int
}

// Default returns a Finder with gitleaks' default rules. Each is read and
// prepared once a process, when a text first has one of its keywords.
func Default() *Finder { return &Finder{rules: defaultRules} }

// New returns a Finder that also follows a repository's own gitleaks
// configuration (.gitleaks.toml, as of the base commit). Its rules and
// allowlists are added to the defaults, as with useDefault; it may disable
// default rules. A file that extends another is an error.
func New(config []byte) (*Finder, error) {
	own, err := readConfig(config)
	if err != nil {
		return nil, fmt.Errorf("gitleaks configuration: %w", err)
	}
	set, err := newRuleset(own)
	if err != nil {
		return nil, fmt.Errorf("gitleaks configuration: %w", err)
	}
	return &Finder{rules: func() *ruleset { return set }}, nil
}

// Knowing returns a Finder that also finds these values, such as the tokens
// that the process itself uses, wherever they stand and however encoded.
// Values of less than eight bytes are ignored.
func (f *Finder) Knowing(values ...string) *Finder {
	var list []known
	for _, v := range values {
		list = append(list, pieces([]byte(v), KindKnown)...)
		// As forms in URLs have it; other escapes are decoded.
		if spaced := strings.ReplaceAll(v, " ", "+"); spaced != v {
			list = append(list, pieces([]byte(spaced), KindKnown)...)
		}
	}
	return f.learning(list)
}

// Also returns a Finder that also finds the values that another one knows.
func (f *Finder) Also(other *Finder) *Finder {
	have := map[string]bool{}
	for _, k := range f.values {
		have[string(k.value)] = true
	}
	return f.learning(slices.DeleteFunc(slices.Clone(other.values), func(k known) bool { return have[string(k.value)] }))
}

// learning returns a Finder that knows more values.
func (f *Finder) learning(list []known) *Finder {
	if len(list) == 0 {
		return f
	}
	all := slices.Concat(f.values, list)
	return &Finder{rules: f.rules, values: all, known: newExact(all, false), knownEncoded: newExact(all, true)}
}

// Find returns the secrets in s, in order; they do not overlap.
func (f *Finder) Find(s string) []Finding {
	spans, _ := f.search(plainText{f.rules(), []byte(s)})
	var out []Finding
	for _, p := range spans {
		if !p.old {
			out = append(out, Finding{p.kind, p.start, p.end})
		}
	}
	return out
}

// Text returns s with every secret replaced by <REDACTED:kind>.
func (f *Finder) Text(s string) string {
	text := []byte(s)
	spans, _ := f.search(plainText{f.rules(), text})
	if len(spans) == 0 {
		return s
	}
	return string(render(text, spans))
}

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

// around copies text[from:to] with barriers for the hidden spans in it.
func (v *view) around(text []byte, from, to int, hidden []span) {
	for _, h := range hidden {
		v.copied(text[from:h.start], from)
		v.stands([]byte{barrier}, h.start, h.end)
		from = h.end
	}
	v.copied(text[from:to], from)
}

func (t plainText) markers() []span {
	if len(t.text) > maxDocument {
		return t.whole()
	}
	return t.set.markers(t.text, 0)
}

func (t plainText) whole() []span      { return []span{{end: len(t.text), kind: KindUnscanned}} }
func (t plainText) path(at int) string { return "" }

// clip widens spans to whole characters, so that valid UTF-8 stays valid.
func (t plainText) clip(spans []span) []span {
	for i, s := range spans {
		spans[i].start, spans[i].end = widen(t.text, s.start, s.end, 0, len(t.text))
	}
	return spans
}

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
