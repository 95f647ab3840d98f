package secret

import "bytes"

// joined reads v with its lines run together, as a secret that was split over
// them is put together again: without indentation, and without the quotes and
// operators that a string literal is continued with. nil where v is one line.
func joined(v *view) *view {
	if bytes.IndexByte(v.text, '\n') < 0 {
		return nil
	}
	out := &view{parent: v, depth: v.depth, text: make([]byte, 0, len(v.text)), joints: []joint{}}
	var before line
	for at := 0; at < len(v.text); {
		size := bytes.IndexByte(v.text[at:], '\n')
		if size < 0 {
			size = len(v.text) - at
		}
		if next := newLine(v.text, at, at+size); next.from < next.to {
			before = out.join(v.text, before, next)
		}
		at += size + 1
	}
	out.copied(v.text[before.from:before.to], before.from)
	return out
}

// A line is a part of a text without the white space around it. Where code
// continues a string on it or after it, it opens at open and closes at shut.
type line struct {
	from, to   int
	open, shut int
	opens      bool
	ends       ending
}

func newLine(text []byte, from, to int) line {
	l := line{from: skip(text[:to], from), to: from + back(text[from:to], to-from)}
	if l.from < l.to {
		l.from += comment(text[l.from:l.to])
		l.open, l.opens = continues(text, l.from, l.to)
		l.shut, l.ends = shutting(text, l.from, l.to)
	}
	return l
}

// join adds the line before, now that the one after it is known, and returns
// that as it is to be added.
func (v *view) join(text []byte, before, next line) line {
	firm := before.ends == continued || before.ends == quoted && next.opens
	if firm {
		before.to = before.shut
		if next.opens {
			next.from = next.open
		}
	}
	if before.from < before.to {
		v.copied(text[before.from:before.to], before.from)
	}
	if next.from > next.to {
		next.from = next.to
	}
	v.joints = append(v.joints, joint{int32(len(v.text)), firm})
	return next
}

// ending says how a line ends: with nothing special, with a closing quote, or
// with a backslash.
type ending int

const (
	plain ending = iota
	quoted
	continued
)

// continues returns where a line's text begins if it goes on with the string of
// the line before: after a quote, or an operator and a quote.
func continues(text []byte, from, to int) (at int, opens bool) {
	at = from
	if at < to && isOperator(text[at]) {
		at = skip(text[:to], at+1)
	}
	if at < to && isQuote(text[at]) {
		return at + 1, true
	}
	return from, false
}

// shutting returns where a line's text ends if the next line goes on with it.
func shutting(text []byte, from, to int) (end int, how ending) {
	if text[to-1] == '\\' {
		return from + back(text[from:to], to-1-from), continued
	}
	end = to
	if isOperator(text[end-1]) {
		end = from + back(text[from:to], end-1-from)
	}
	if end > from && isQuote(text[end-1]) {
		return end - 1, quoted
	}
	return to, plain
}

// comment is the length of a comment's leader, as every line of a broken
// comment has one.
func comment(line []byte) int {
	for _, leader := range []string{"// ", "# ", "* "} {
		if bytes.HasPrefix(line, []byte(leader)) {
			return len(leader)
		}
	}
	return 0
}

func skip(line []byte, at int) int {
	for at < len(line) && isSpace(line[at]) {
		at++
	}
	return at
}

func back(line []byte, end int) int {
	for end > 0 && isSpace(line[end-1]) {
		end--
	}
	return end
}

func isSpace(c byte) bool    { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' }
func isQuote(c byte) bool    { return c == '"' || c == '\'' || c == '`' }
func isOperator(c byte) bool { return c == '+' || c == '.' || c == '&' }
