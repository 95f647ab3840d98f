package secret

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/redact"
)

// diffKey is the key under which documents hold diffs.
const diffKey = "unified_diff"

// JSON returns a JSON document in canonical form with its secrets redacted, in
// every string and every key. A string is left alone where typed says that it
// is a hash, an id or the like; key is the key of the innermost object member
// that it stands in, so the elements of an array under "files" have the key
// "files", and "" where the string is the name of a member itself. A nil typed leaves nothing alone. What stands under "unified_diff"
// is redacted as a diff. A secret that one string gives away is redacted in
// all. Errors do not show what is in the document.
func (f *Finder) JSON(doc []byte, typed func(key, value string) bool) ([]byte, error) {
	v, err := canon.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("redacting JSON: %w", plainError(err))
	}
	r := &jsonRedactor{finder: f, typed: typed}
	out, err := r.value("", v)
	if err == nil && len(r.secrets) > 0 {
		r.finder, r.secrets = f.learning(r.secrets), nil
		out, err = r.value("", v)
	}
	if err != nil {
		return nil, fmt.Errorf("redacting JSON: %w", err)
	}
	return canon.Marshal(out)
}

// plainError keeps of a parser's error where it was; its message could quote
// the document.
func plainError(err error) error {
	var syntax *canon.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("invalid JSON at byte %d", syntax.Offset)
	}
	return errors.New("invalid JSON")
}

// A jsonRedactor walks one document, and gathers the secrets it meets.
type jsonRedactor struct {
	finder  *Finder
	typed   func(key, value string) bool
	secrets []known
}

func (r *jsonRedactor) value(key string, v any) (any, error) {
	switch v := v.(type) {
	case string:
		switch {
		case r.typed != nil && r.typed(key, v):
			return v, nil
		case key == diffKey:
			return r.redact(newDiffText(r.finder.rules(), []byte(v)), v), nil
		}
		return r.redact(plainText{r.finder.rules(), []byte(v)}, v), nil
	case []any:
		return r.list(key, v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			redacted := key
			if r.typed == nil || !r.typed("", key) {
				redacted = r.redact(plainText{r.finder.rules(), []byte(key)}, key)
			}
			if _, ok := out[redacted]; ok {
				return nil, errors.New("two keys of an object are the same once redacted")
			}
			made, err := r.value(key, member)
			if err != nil {
				return nil, err
			}
			out[redacted] = made
		}
		return out, nil
	}
	return v, nil
}

// list redacts the elements of an array, those of a long one on all cores.
func (r *jsonRedactor) list(key string, v []any) (any, error) {
	const long = 100
	workers := 1
	if len(v) >= long {
		workers = runtime.GOMAXPROCS(0)
	}
	out, secrets := make([]any, len(v)), make([][]known, len(v))
	err := parallel.Try(workers, len(v), func(i int) (err error) {
		one := jsonRedactor{finder: r.finder, typed: r.typed}
		out[i], err = one.value(key, v[i])
		secrets[i] = one.secrets
		return err
	})
	r.secrets = append(r.secrets, slices.Concat(secrets...)...)
	return out, err
}

func (r *jsonRedactor) redact(src source, s string) string {
	spans, secrets := r.finder.search(src)
	r.secrets = append(r.secrets, secrets...)
	if len(spans) == 0 {
		return s
	}
	return string(render([]byte(s), spans))
}

// Redacted is a text that is safe to store, print or send. It is made here
// alone: from a text by a Finder, from constants, and from other Redacted
// texts. What writes to the outside takes a Redacted, so nothing gets there
// past a Finder. The zero Redacted is empty.
type Redacted struct{ text string }

// Redact is Text for a sink.
func (f *Finder) Redact(s string) Redacted { return Redacted{f.Text(s)} }

// RedactDiff is Diff for a sink.
func (f *Finder) RedactDiff(diff []byte) Redacted { return Redacted{string(f.Diff(diff))} }

// RedactJSON is JSON for a sink.
func (f *Finder) RedactJSON(doc []byte, typed func(key, value string) bool) (Redacted, error) {
	out, err := f.JSON(doc, typed)
	return Redacted{string(out)}, err
}

// Show returns the text as it is shown: coloured, folded, made of a document's
// fields. show adds nothing that did not stand in the text.
func (r Redacted) Show(show func(string) string) Redacted { return Redacted{show(r.text)} }

// String returns the text.
func (r Redacted) String() string { return r.text }

// MarshalText returns the text.
func (r Redacted) MarshalText() ([]byte, error) { return []byte(r.text), nil }

// MarshalJSON returns the text as a JSON string.
func (r Redacted) MarshalJSON() ([]byte, error) { return json.Marshal(r.text) }

// Refuse returns a *redact.FoundError if a text has what looks like a secret. path is
// where the text is, and why says why it must not have one.
func (f *Finder) Refuse(path, text, why string) error {
	found := f.Find(text)
	if len(found) == 0 {
		return nil
	}
	return &redact.FoundError{Found: []redact.Finding{{Path: f.Text(path), Kind: found[0].Kind}}, Why: why}
}
