package secret

import (
	"bytes"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/lazyregexp"
)

// The values of a Kubernetes Secret are found one by one: those of its map
// stringData, and those of data where "kind: Secret" stands near (gitleaks'
// rule kubernetes-secret-yaml takes one of data and none of stringData). What
// is only words, or a reference to what is elsewhere, is none.

const (
	maxManifest = 64 << 10 // bytes of a map that are looked at
	kindReach   = 2 << 10  // between a map and "kind: Secret"
)

var (
	secretKind    = lazyregexp.New(`(?i)\bkind["']?:[ \t]*["']?secret(?:["'\s,}]|$)`)
	manifestMap   = lazyregexp.New(`(?i)(?:^|\W)(string)?data["']?:$`)
	manifestValue = lazyregexp.New(`(?m)(?:^[ \t]*["']?[\w./-]{1,253}["']?:[ \t]+(?:[|>][+-]?[ \t]*\r?\n[ \t]*)?|[{,][ \t]*"[\w./-]{1,253}":[ \t]*)["']?([^\s"'<>{}()\x00]{8,})(?:["'\s,}]|$)|^[ \t]+([A-Za-z0-9+/_-]{16,}={0,2})[ \t\r]*$`)
	manifestWords = lazyregexp.New(`^\[?(?:(?:[A-Z]?[a-z]{2,})+|[A-Z]{2,})(?:[-_./:@]+(?:(?:[A-Z]?[a-z]{2,})+|[A-Z]{2,}))*\]?$|^\$[A-Z_]+$|^ENC\[`)
)

// manifests takes the places behind "data:" in the view, and those of "secret".
func (w *work) manifests(v *view, data, secrets []int) {
	kinds := slices.DeleteFunc(secrets, func(at int) bool {
		return !secretKind().Match(v.text[max(0, at-20):min(len(v.text), at+len("secret")+1)])
	})
	until := 0
	for _, at := range data {
		name := manifestMap().FindSubmatchIndex(v.text[max(0, at-20):at])
		if at < until || name == nil || name[2] < 0 && !near(v.text, at, kinds) {
			continue
		}
		until = at + nested(v.text[at:], indent(v.text[bytes.LastIndexByte(v.text[:at], '\n')+1:]))
		if !w.spend(&w.exprs, cost(until-at)) {
			w.unscanned(v, at, len(v.text))
			return
		}
		for _, loc := range manifestValue().FindAllSubmatchIndex(v.text[at:until], -1) {
			from, to := at+max(loc[2], loc[4]), at+max(loc[3], loc[5])
			if !manifestWords().Match(v.text[from:to]) {
				w.secret(v, from, to, kubernetesSecret)
			}
		}
	}
}

// near reports whether one of the places is near, in the same document.
func near(text []byte, at int, kinds []int) bool {
	i, _ := slices.BinarySearch(kinds, at)
	for _, kind := range kinds[max(0, i-1):min(len(kinds), i+1)] {
		from, to := min(at, kind), max(at, kind)
		if to-from <= kindReach && !bytes.Contains(text[from:to], []byte("\n---")) {
			return true
		}
	}
	return false
}

// nested is the length of what stands on the first line and on those below it
// that are indented further.
func nested(text []byte, than int) int {
	limit := min(len(text), maxManifest)
	for at := 0; ; {
		size := bytes.IndexByte(text[at:limit], '\n')
		if size < 0 {
			return limit
		}
		at += size + 1
		line := text[at:]
		if n := indent(line); n <= than && n < len(line) && bytes.IndexByte([]byte("\r\n#"), line[n]) < 0 {
			return at
		}
	}
}

// indent is the number of blanks that a line begins with.
func indent(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " \t")) }
