package secret

import (
	"bytes"
	"regexp"
	"sort"
)

// Private keys in PEM are found without an expression that would have to look
// for the end of every beginning: gitleaks' rule private-key, and also blocks
// whose other half is not there.

const (
	maxBlock  = 64 << 10
	maxHeader = 150
	minBlock  = 40 // digits of base64
)

var (
	blockBegin = regexp.MustCompile(`(?i)\A-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----`)
	blockEnd   = regexp.MustCompile(`(?i)\A-----END[ A-Z0-9_-]{0,100}KEY(?: BLOCK)?-----`)
)

// blocks takes the places of "-----BEGIN" and "-----END" in the view.
func (w *work) blocks(v *view, begins, ends []int) {
	done := 0
	for _, b := range begins {
		if b < done {
			continue
		}
		if to := w.block(v, b, ends); to > b {
			w.secret(v, b, to, privateKey)
			done = to
		}
	}
	done = 0
	for _, e := range ends {
		if from := w.tail(v, e, done); from < e {
			w.secret(v, from, e, privateKey)
		}
		done = e
	}
}

func (w *work) header(re *regexp.Regexp, v *view, at int) int {
	text := v.text[at:min(len(v.text), at+maxHeader)]
	if !w.spend(&w.exprs, 30) {
		w.unscanned(v, at, len(v.text))
		return 0
	}
	loc := re.FindIndex(text)
	if loc == nil {
		return 0
	}
	return at + loc[1]
}

// block returns the end of the key that begins at b, or b.
func (w *work) block(v *view, b int, ends []int) int {
	body := w.header(blockBegin, v, b)
	if body == 0 {
		return b
	}
	if i := sort.SearchInts(ends, body); i < len(ends) && ends[i]-body <= maxBlock {
		inside := v.text[body:ends[i]]
		if isBarren(inside) || countDigits(inside) < minBlock {
			return max(b, keyBody(v.text, body, b))
		}
		return max(ends[i]+len("-----END"), w.header(blockEnd, v, ends[i]))
	}
	return keyBody(v.text, body, b)
}

func isPrivate(header []byte) bool {
	return bytes.Contains(bytes.ToUpper(header), []byte("PRIVATE"))
}

func countDigits(text []byte) int {
	n := 0
	for _, c := range text {
		if digits[c] < 64 && c != '-' {
			n++
		}
	}
	return n
}

// keyBody follows the lines of a key without an end. It returns otherwise
// where there are none.
func keyBody(text []byte, start, otherwise int) int {
	end, found := start, 0
	for at := start; at-start < maxBlock; {
		at = betweenLines(text, at)
		n := 0
		for at+n < len(text) && (digits[text[at+n]] < 64 || text[at+n] == '=') {
			n++
		}
		if n < minPiece && found < minBlock {
			break
		}
		if n == 0 {
			break
		}
		found, at = found+n, at+n
		end = at
		if n < minPiece {
			break
		}
	}
	if found < minBlock {
		return otherwise
	}
	return end
}

// betweenLines skips what may stand between two lines of a key: ends of
// lines, as such or escaped, quotes, operators, and PEM's own header fields.
func betweenLines(text []byte, at int) int {
	for at < len(text) {
		rest := text[at:]
		switch {
		case bytes.HasPrefix(rest, []byte(`\n`)), bytes.HasPrefix(rest, []byte(`\r`)):
			at += 2
		case bytes.IndexByte([]byte(" \t\r\n\"'`\\,+;|>"), rest[0]) >= 0:
			at++
		case field(rest) > 0:
			at += field(rest)
		default:
			return at
		}
	}
	return at
}

// field is the length of a line such as "Proc-Type: 4,ENCRYPTED".
func field(text []byte) int {
	for _, name := range []string{"Proc-Type: ", "DEK-Info: ", "Version: ", "Comment: "} {
		if !bytes.HasPrefix(text, []byte(name)) {
			continue
		}
		line := text[:min(len(text), maxHeader)]
		if i := bytes.IndexByte(line, '\n'); i > 0 {
			return i
		}
	}
	return 0
}

// tail returns where the key begins whose end is at e and whose beginning is
// not there: the lines of base64 before it, none before done.
func (w *work) tail(v *view, e, done int) int {
	if to := w.header(blockEnd, v, e); !isPrivate(v.text[e:max(e, to)]) {
		return e
	}
	from, found := e, 0
	for at := e; at > done && e-at < maxBlock; {
		end := back(v.text, at)
		for end > done && v.text[end-1] == '\n' {
			end = back(v.text, end-1)
		}
		at = end
		for at > done && (digits[v.text[at-1]] < 64 || v.text[at-1] == '=') {
			at--
		}
		// Only the last line of a key is short.
		if n := end - at; n < minPiece && (found > 0 || n == 0) {
			break
		}
		from, found = at, found+end-at
	}
	if found < minBlock {
		return e
	}
	return from
}
