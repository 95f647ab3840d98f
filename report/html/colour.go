package html

import (
	"path"
	"strings"
)

// A token of a line is a part of it with a class of its own: "k" for a keyword, a key or a
// tag, "s" for a string, "n" for a number, "c" for a comment, "" for anything else.
type token struct {
	class constant
	text  string
}

// A language says what the parts of a line are. Colours are a help to the eye and nothing
// more: the scanner goes over a line once, so it cannot hang, it drops nothing, and what it gets wrong
// has another colour. The libraries that do more cost 4.4 MB of the program and 16 ms of each of its starts.
type language struct {
	comment  []string // begin a comment that ends with the line
	block    [][2]string
	quotes   []quote
	words    map[string]bool
	caseless bool   // of words
	in       string // signs that a word has inside
	key      string // signs that end a key at the beginning of a line
	tags     bool   // words and strings are those inside < and >
	heading  string // a line that begins with it is one token
}

// A quote is how a string begins and ends.
type quote struct {
	begin, end string
	escapes    bool // with a backslash
	lines      bool // over several lines
	most       int  // bytes up to the end, 0 for any: it may be something else as well
}

// A lexer is the state in which a line begins: 0 for the language's ground, else inside a comment or a
// string of several lines, or a tag.
type lexer int

const inTag lexer = -1

// maxColoured bounds a line that is coloured, in bytes.
const maxColoured = 4000

// scan returns the tokens of a line and the state after it. Put together the tokens are the line.
func (l *language) scan(at lexer, line string) ([]token, lexer) {
	if l == nil || len(line) > maxColoured {
		return []token{{"", line}}, at
	}
	s := scanner{language: l, line: line, lexer: at}
	if at > 0 {
		s.finish()
	} else if !s.wholeLine() {
		s.leadingKey()
	}
	for s.i < len(line) {
		s.next()
	}
	s.cut("")
	return s.tokens, s.lexer
}

// A scanner is on its way through one line: what is from done to i is plain.
type scanner struct {
	*language
	line    string
	done, i int
	lexer   lexer
	tokens  []token
}

// cut ends a token at i.
func (s *scanner) cut(class constant) {
	if s.i > s.done {
		s.tokens = append(s.tokens, token{class, s.line[s.done:s.i]})
	}
	s.done = s.i
}

// take makes the next n bytes a token.
func (s *scanner) take(class constant, n int) {
	s.cut("")
	s.i = min(s.i+n, len(s.line))
	s.cut(class)
}

func (s *scanner) rest() string { return s.line[s.i:] }

// wholeLine takes a line that is one token.
func (s *scanner) wholeLine() bool {
	if s.heading == "" || !strings.HasPrefix(s.line, s.heading) {
		return false
	}
	s.take("k", len(s.line))
	return true
}

// leadingKey takes the key that a line begins with.
func (s *scanner) leadingKey() {
	if s.key == "" {
		return
	}
	from := len(s.line) - len(strings.TrimLeft(s.line, " \t-"))
	end := from
	for end < len(s.line) && (isWord(s.line[end]) || strings.IndexByte("-./\"", s.line[end]) >= 0) {
		end++
	}
	if after := strings.TrimLeft(s.line[end:], " "); end > from && after != "" && strings.IndexByte(s.key, after[0]) >= 0 {
		s.i = from
		s.take("k", end-from)
	}
}

// finish goes on with what an earlier line began.
func (s *scanner) finish() {
	class, q := s.open()
	s.span(class, q, 0)
}

// open is what a state is inside of: blocks count from 1, quotes follow.
func (s *scanner) open() (constant, quote) {
	n := int(s.lexer) - 1
	if n < len(s.block) {
		return "c", quote{end: s.block[n][1], lines: true}
	}
	return "s", s.quotes[n-len(s.block)]
}

// span takes what reaches to the end of a quote, having skipped its beginning.
func (s *scanner) span(class constant, q quote, skip int) {
	at := s.i + skip
	for at < len(s.line) {
		switch {
		case q.escapes && s.line[at] == '\\':
			at += 2
			continue
		case strings.HasPrefix(s.line[at:], q.end):
			s.take(class, at+len(q.end)-s.i)
			if s.lexer > 0 {
				s.lexer = 0
			}
			return
		}
		at++
	}
	s.take(class, len(s.line)-s.i)
	if !q.lines && s.lexer > 0 {
		s.lexer = 0
	}
}

// next takes a token, or goes on by a byte.
func (s *scanner) next() {
	switch c := s.line[s.i]; {
	case s.begins():
	case s.tags && s.lexer != inTag:
		if c == '<' {
			s.lexer = inTag
		}
		s.i++
	case s.tags && c == '>':
		s.lexer = 0
		s.i++
	case isWord(c) || c >= 0x80 || c == '@' || c == '$':
		s.word()
	default:
		s.i++
	}
}

// begins takes a comment or a string that begins here.
func (s *scanner) begins() bool {
	rest := s.rest()
	for n, b := range s.block {
		if strings.HasPrefix(rest, b[0]) {
			before := s.lexer
			s.lexer = lexer(n + 1)
			s.span("c", quote{end: b[1], lines: true}, len(b[0]))
			if s.lexer == 0 {
				s.lexer = before
			}
			return true
		}
	}
	if s.tags && s.lexer != inTag {
		return false
	}
	for _, mark := range s.comment {
		if strings.HasPrefix(rest, mark) && (mark != "#" || s.i == 0 || s.line[s.i-1] == ' ' || s.line[s.i-1] == '\t') {
			s.take("c", len(rest))
			return true
		}
	}
	for n, q := range s.quotes {
		if !strings.HasPrefix(rest, q.begin) || q.most > 0 && !q.isShort(rest) {
			continue
		}
		before := s.lexer
		if q.lines {
			s.lexer = lexer(len(s.block) + n + 1)
		}
		s.span("s", q, len(q.begin))
		if s.lexer == 0 {
			s.lexer = before
		}
		return true
	}
	return false
}

// isShort reports whether a string that may be something else, such as a lifetime, ends soon.
func (q quote) isShort(rest string) bool {
	body := rest[len(q.begin):]
	at := strings.Index(body[min(1, len(body)):], q.end)
	return at >= 0 && at < q.most
}

// word takes a number, or a word of the language.
func (s *scanner) word() {
	end := s.i + 1
	number := s.line[s.i] >= '0' && s.line[s.i] <= '9'
	for end < len(s.line) {
		c := s.line[end]
		if !isWord(c) && c < 0x80 && !(number && c == '.') && strings.IndexByte(s.in, c) < 0 {
			break
		}
		end++
	}
	text := s.line[s.i:end]
	if s.caseless {
		text = strings.ToLower(text)
	}
	switch {
	case number:
		s.take("n", end-s.i)
	case s.words[text], s.tags && s.i > 0 && (s.line[s.i-1] == '<' || s.line[s.i-1] == '/'):
		s.take("k", end-s.i)
	default:
		s.i = end
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// languageOf is the language of a file by its name, nil for none that is known.
func languageOf(file string) *language {
	name := strings.ToLower(path.Base(file))
	if l, ok := byName()[name]; ok {
		return l
	}
	return byName()[strings.TrimPrefix(path.Ext(name), ".")]
}
