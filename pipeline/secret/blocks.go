package secret

import (
	"bytes"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// Private keys in PEM are found without an expression that would have to look
// for the end of every beginning, and also where their other half is not there
// (gitleaks' rule private-key). A secret in them is the base64 and what only
// separates its lines: code between a BEGIN and an END line stays to be read.

const (
	maxBlock  = 64 << 10
	maxHeader = 150
	minLine   = 32 // digits of base64, of every line but the last
)

var (
	blockBegin = canon.Regexp(`(?i)\A-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----`)
	blockEnd   = canon.Regexp(`(?i)\A-----END[ A-Z0-9_-]{0,100}KEY(?: BLOCK)?-----`)
)

// A boundary is a line that begins or ends a block.
type boundary struct {
	start, end     int // end is start where the line is of no key
	begin, private bool
}

// blocks takes the places of "-----BEGIN" and "-----END" in the view. What
// stands between two of them is read at most twice.
func (w *work) blocks(v *view, begins, ends []int) {
	list := make([]boundary, 0, len(begins)+len(ends))
	for _, at := range begins {
		list = append(list, boundary{start: at, begin: true})
	}
	for _, at := range ends {
		list = append(list, boundary{start: at})
	}
	slices.SortFunc(list, func(a, b boundary) int { return a.start - b.start })
	for i := range list {
		if !w.spend(&w.exprs, 30) {
			w.unscanned(v, list[i].start, len(v.text))
			list = list[:i]
			break
		}
		limit := len(v.text)
		if i+1 < len(list) {
			limit = list[i+1].start
		}
		list[i].read(v.text[:limit])
	}
	for i, b := range list {
		if !b.private {
			continue
		}
		before, after := boundary{}, boundary{start: len(v.text), begin: true}
		if i > 0 {
			before = list[i-1]
		}
		if i+1 < len(list) {
			after = list[i+1]
		}
		switch {
		case b.begin:
			w.key(v, b, after, !after.begin && after.start-b.end <= maxBlock)
		case !before.begin || !before.private || b.start-before.end > maxBlock:
			w.tail(v, max(before.end, b.start-maxBlock), b.start)
		}
	}
}

func (b *boundary) read(text []byte) {
	expr := blockEnd
	if b.begin {
		expr = blockBegin
	}
	b.end = b.start
	if loc := expr().FindIndex(text[b.start:min(len(text), b.start+maxHeader)]); loc != nil {
		b.end = b.start + loc[1]
		b.private = bytes.Contains(bytes.ToUpper(text[b.start:b.end]), []byte("PRIVATE"))
	}
}

// key finds what is a key after its beginning: up to its end, or, where it is
// not closed, up to what is no line of a key. The lines that begin and end it
// go with it where only separators stand between.
func (w *work) key(v *view, begin, end boundary, closed bool) {
	from, to, found := begin.start, begin.end, false
	runs := keyRuns(v.text[:min(end.start, begin.end+maxBlock)], begin.end)
	for i, r := range runs {
		joins := separates(v.text[to:r.start])
		if !closed && (found && !joins || !found && r.start-begin.end > maxHeader) {
			break
		}
		switch {
		case r.long && !joins:
			if found {
				w.add(v, from, to, privateKey)
			}
			from = r.start
			fallthrough
		case r.long:
			to, found = r.end, true
			w.learn(v, r)
		case found && joins && r.last && (!closed || i >= len(runs)-2): // perhaps with a checksum after it
			to = r.end
			w.learn(v, r)
		}
	}
	if closed && separates(v.text[to:end.start]) {
		to = max(end.end, end.start+len("-----END"))
	}
	if found {
		w.add(v, from, to, privateKey)
	}
}

// tail finds the lines of a key before its end whose beginning is not there.
func (w *work) tail(v *view, from, end int) {
	runs := keyRuns(v.text[:end], from)
	slices.Reverse(runs)
	at, found := end, false
	for i, r := range runs {
		if !separates(v.text[r.end:at]) || !r.long && (found || !r.last || i > 1) {
			break
		}
		at, found = r.start, found || r.long
	}
	if !found {
		return
	}
	for _, r := range runs {
		if r.start >= at {
			w.learn(v, r)
		}
	}
	w.add(v, at, runs[0].end, privateKey)
}

// A keyRun is a run of base64 digits between the lines of a block.
type keyRun struct {
	start, end int
	long       bool // as every line of a key but the last
	last       bool // may be the last line: more than a word
	padded     bool
}

// learn looks for a line of a key everywhere. A short line could be a name
// that code uses.
func (w *work) learn(v *view, r keyRun) {
	if r.long || r.padded && r.end-r.start >= minPiece {
		w.secrets = append(w.secrets, pieces(slices.Clone(v.text[r.start:r.end]), privateKey)...)
	}
}

// keyRuns returns the runs of base64 digits in text from start on. A line is
// long enough, and has letters of both cases and digits, as all but one in
// 50,000 random ones of 64 digits have; that one is as long as its neighbour.
func keyRuns(text []byte, start int) []keyRun {
	var out []keyRun
	for at := start; at < len(text); at++ {
		r := keyRun{start: at}
		var low, high, digit bool
		for ; at < len(text) && (digits[text[at]] < 62 || text[at] == '+' || text[at] == '/' || text[at] == '='); at++ {
			c := text[at]
			low, high, digit = low || 'a' <= c && c <= 'z', high || 'A' <= c && c <= 'Z', digit || '0' <= c && c <= '9'
			r.padded = r.padded || c == '='
		}
		if r.end = at; low || high || digit || r.padded {
			r.long = r.end-r.start >= minLine && low && high && digit
			r.last = digit || r.padded
			out = append(out, r)
		}
		if at+1 < len(text) && text[at] == '\\' && bytes.IndexByte([]byte("nrt"), text[at+1]) >= 0 {
			at++
		}
	}
	for i := range out {
		out[i].long = out[i].long || i > 0 && out[i].like(out[i-1]) || i+1 < len(out) && out[i].like(out[i+1])
	}
	return out
}

// like reports whether a run is as long as a line of a key.
func (r keyRun) like(line keyRun) bool { return line.long && r.end-r.start == line.end-line.start }

// separates reports whether text is only what may stand between two lines of a
// key: ends of lines, as such or escaped, quotes, operators and the signs that
// comments begin with.
func separates(text []byte) bool {
	for at := 0; at < len(text); at++ {
		if text[at] == '\\' && at+1 < len(text) && bytes.IndexByte([]byte("nrt"), text[at+1]) >= 0 {
			at++
		} else if bytes.IndexByte([]byte(" \t\r\n\"'`\\,;|>#*&.+/"), text[at]) < 0 {
			return false
		}
	}
	return true
}

// The values of a Kubernetes Secret are found one by one: those of its map
// stringData, and those of data where "kind: Secret" stands near (gitleaks'
// rule kubernetes-secret-yaml takes one of data and none of stringData). What
// is only words, or a reference to what is elsewhere, is none.

const (
	maxManifest = 64 << 10 // bytes of a map that are looked at
	kindReach   = 2 << 10  // between a map and "kind: Secret"
)

var (
	secretKind    = canon.Regexp(`(?i)\bkind["']?:[ \t]*["']?secret(?:["'\s,}]|$)`)
	manifestMap   = canon.Regexp(`(?i)(?:^|\W)(string)?data["']?:$`)
	manifestValue = canon.Regexp(`(?m)(?:^[ \t]*["']?[\w./-]{1,253}["']?:[ \t]+(?:[|>][+-]?[ \t]*\r?\n[ \t]*)?|[{,][ \t]*"[\w./-]{1,253}":[ \t]*)["']?([^\s"'<>{}()\x00]{8,})(?:["'\s,}]|$)|^[ \t]+([A-Za-z0-9+/_-]{16,}={0,2})[ \t\r]*$`)
	manifestWords = canon.Regexp(`^\[?(?:(?:[A-Z]?[a-z]{2,})+|[A-Z]{2,})(?:[-_./:@]+(?:(?:[A-Z]?[a-z]{2,})+|[A-Z]{2,}))*\]?$|^\$[A-Z_]+$|^ENC\[`)
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
