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
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/redact"
)

// A Finder finds secrets. It may be used by several goroutines at once.
type Finder struct {
	rules func() *ruleset
	known knownValues
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
	for _, k := range f.known.list {
		have[string(k.value)] = true
	}
	return f.learning(slices.DeleteFunc(slices.Clone(other.known.list), func(k known) bool { return have[string(k.value)] }))
}

// learning returns a Finder that knows more values.
func (f *Finder) learning(list []known) *Finder {
	if len(list) == 0 {
		return f
	}
	return &Finder{rules: f.rules, known: newKnownValues(slices.Concat(f.known.list, list))}
}

func (f *Finder) search(src source) ([]span, []known) { return search(src, f.rules(), f.known) }

// Find returns the secrets in s, in order; they do not overlap.
func (f *Finder) Find(s string) []redact.Place {
	spans, _ := f.search(plainText{f.rules(), []byte(s)})
	var out []redact.Place
	for _, p := range spans {
		if !p.old {
			out = append(out, redact.Place{Kind: p.kind, Start: p.start, End: p.end})
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
