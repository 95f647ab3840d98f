package secret

import "bytes"

// joined reads v with its lines run together, as a secret that was split over
// them is put together again: without indentation, and without the quotes and
// operators that a string literal is continued with. nil where v is one line.
func joined(v *view) *view {
	if bytes.IndexByte(v.text, '\n') < 0 {
		return nil
	}
	out := &view{parent: v, depth: v.depth, text: make([]byte, 0, len(v.text))}
	before := plain
	for at := 0; at < len(v.text); {
		size := bytes.IndexByte(v.text[at:], '\n')
		if size < 0 {
			size = len(v.text) - at
		}
		line := v.text[at : at+size]
		head, opens := lineStart(line)
		tail, ends := lineEnd(line[head:])
		if tail > 0 {
			firm := before == continued || before == quoted && opens
			out.joints = append(out.joints, joint{int32(len(out.text)), firm})
			out.copied(line[head:head+tail], at+head)
			before = ends
		}
		at += size + 1
	}
	return out
}

// ending says how a line ends: with nothing special, with a closing quote, or
// with a backslash.
type ending int

const (
	plain ending = iota
	quoted
	continued
)

// lineStart returns where a line's text begins, and whether it goes on from
// the line before: it opens with a quote, or with an operator and a quote.
func lineStart(line []byte) (at int, opens bool) {
	at = skip(line, 0)
	if n := comment(line[at:]); n > 0 {
		return skip(line, at+n), false
	}
	begin := at
	if at < len(line) && isOperator(line[at]) {
		at = skip(line, at+1)
	}
	if at < len(line) && isQuote(line[at]) {
		return at + 1, true
	}
	return begin, false
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

// lineEnd returns where a line's text ends, and how.
func lineEnd(line []byte) (end int, how ending) {
	end = back(line, len(line))
	if end > 0 && line[end-1] == '\\' {
		end = back(line, end-1)
		return end, continued
	}
	until := end
	if end > 0 && isOperator(line[end-1]) {
		end = back(line, end-1)
	}
	if end > 0 && isQuote(line[end-1]) {
		return end - 1, quoted
	}
	return until, plain
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
