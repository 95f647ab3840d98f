package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
)

// What GitHub takes, in bytes of UTF-8. Its documentation of check runs says
// characters for summary and text; its answer to a longer one says "exceeds a
// maximum bytesize of 65535" (github/docs issue 35252, dorny/test-reporter issue
// 57). Of comments its answer says 65536 characters. Bytes are the strictest
// reading of both: no text has more characters, or more UTF-16 units, than bytes.
const (
	MaxCheckText = 65535
	MaxComment   = 65536
)

// A page is Markdown of limited size. What matters most is written first; what
// does not fit any more is left out whole, and the page says so.
type page struct {
	b    strings.Builder
	left int // bytes
	cut  bool
}

const cutNote = "\n**Cut here:** there is no room for more. The ledger has all of it.\n"

func newPage(limit int) *page { return &page{left: limit - len(cutNote)} }

func (p *page) String() string {
	if p.cut {
		return p.b.String() + cutNote
	}
	return p.b.String()
}

// write adds a text if there is room for all of it.
func (p *page) write(text string) {
	if len(text) > p.left {
		p.cut = true
		return
	}
	p.b.WriteString(text)
	p.left -= len(text)
}

// folded writes what opens on a click, as much as there is room for.
func (p *page) folded(summary string, write func(*page)) {
	head, tail := "<details><summary>"+summary+"</summary>\n\n", "</details>\n\n"
	part := newPage(p.left - len(head) - len(tail))
	write(part)
	p.write(head + part.String() + tail)
}

// A list is rows below a head, of which the first most are shown.
type list struct {
	head string
	rows
	most int
	noun string // of one row
	all  string // where all of them are, or ""
}

// rows are lines that are written only where there is room for them.
type rows struct {
	n  int
	at func(i int) string
}

func each[T any](items []T, row func(T) string) rows {
	return rows{len(items), func(i int) string { return row(items[i]) }}
}

// points are rows of plain text, each a point that begins with a word of ours.
func points(word string, texts []string) rows {
	return each(texts, func(text string) string { return "- " + word + ": " + words(text) + "\n" })
}

// list writes as many rows as there is room for and says how many are missing.
func (p *page) list(l list) {
	if l.n == 0 {
		return
	}
	text, shown := []byte(l.head), 0
	for ; shown < min(l.n, l.most); shown++ {
		row := l.at(shown)
		if len(text)+len(row)+len(l.missing(l.n)) > p.left {
			break
		}
		text = append(text, row...)
	}
	if shown == 0 {
		text = nil
	}
	p.write(string(text) + l.missing(l.n-shown))
}

// within is list with at most room bytes.
func (p *page) within(room int, l list) {
	part := newPage(min(room, p.left))
	part.list(l)
	p.write(part.String())
}

func (l list) missing(n int) string {
	if n == 0 {
		return "\n"
	}
	return fmt.Sprintf("\n**Cut:** %s not shown here%s.\n\n", Counted(n, l.noun), l.all)
}

// Foreign text stands in Markdown in one of three ways: prose, code and fenced.
// None of them lets it make structure, links, mentions, images or HTML.

// zeroWidth is put where a character would start a mention or a link: GitHub
// looks for these in the rendered text too, where an escape is gone.
const zeroWidth = "\u200b"

// linking are the beginnings of links that have no special character. A text that
// ends in www may have a full stop of ours behind it.
var linking = lazyregexp.New(`(?i)www|gh-`)

// prose is somebody's words in a sentence of ours, never at the start of a
// line. Punctuation is escaped (CommonMark 2.4), what links is broken up.
func prose(text string) string {
	runes := []rune(linking().ReplaceAllStringFunc(Clean(text), func(m string) string {
		word := strings.TrimSuffix(m, "-")
		return word + zeroWidth + m[len(word):]
	}))
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '$': // mathematics, for which GitHub knows no other escape
			b.WriteString("<span>$</span>")
		case r == '@' || r == '#':
			b.WriteString(string(r) + zeroWidth)
		case r == ':' && (i+1 == len(runes) || runes[i+1] != ' '): // https://, :emoji:
			b.WriteString(string(r) + zeroWidth)
		case strings.ContainsRune("\\`*_{}[]()!|>~&^", r):
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return alphanumeric().ReplaceAllStringFunc(b.String(), func(word string) string {
		if hexadecimal().MatchString(word) {
			return "`" + word + "`"
		}
		return word
	})
}

// GitHub takes a word of hexadecimal digits for a commit, of whatever repository, and
// links it. In a code span it does not.
var (
	alphanumeric = lazyregexp.New(`[0-9A-Za-z]+`)
	hexadecimal  = lazyregexp.New(`^[0-9A-Fa-f]{7,}$`)
)

// code is a name, shown letter by letter: a code span, or, where one could be
// broken out of (by a backtick, or in a table by a bar), HTML with entities.
func code(text string) string {
	shown := Clean(text)
	if shown == "" {
		return ""
	}
	if strings.TrimSpace(shown) == shown && !strings.ContainsAny(shown, "`|\\") {
		return "`" + shown + "`"
	}
	var b strings.Builder
	for _, r := range shown {
		switch {
		case r == '@': // in HTML's code too GFM links an address
			b.WriteString("&#64;" + zeroWidth)
		case r < 0x80 && !isPlain(r):
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return "<code>" + b.String() + "</code>"
}

// isPlain reports whether an ASCII character never means anything in Markdown.
func isPlain(r rune) bool {
	return r == ' ' || r == '/' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// codes is a list of names, at most most of them.
func codes(names []string, most int) string {
	var out []string
	for _, name := range names[:min(len(names), most)] {
		out = append(out, code(shorten(name)))
	}
	if more := len(names) - most; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// fenced is a code block. Its fence is longer than any run of backticks in the
// text, so that no line of the text can end it (CommonMark 4.5).
func fenced(lang, text string) string {
	fence := fenceFor(backticks(text))
	return fence + lang + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}

func fenceFor(run int) string { return strings.Repeat("`", max(3, run+1)) }

// backticks is the length of the longest run of them.
func backticks(text string) int {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// lineBlock is a block with one line to copy.
func lineBlock(line string) string { return fenced("text", Clean(line)) }

// maxWords is how many characters of a foreign text are shown in one place.
const maxWords = 300

// shorten cuts a text that is too long for one place. What is not UTF-8 stays
// as it is, for Clean to show.
func shorten(text string) string { return shortenTo(text, maxWords) }

func shortenTo(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// words is prose of limited length.
func words(text string) string { return prose(shorten(text)) }

// name is code of limited length.
func name(text string) string { return code(shorten(text)) }

var safeURL = lazyregexp.New(`^https?://[A-Za-z0-9./_:#?=&%-]+$`)

// maxURL bounds an address; in the expression it would be written out, which
// every start of the program would pay for.
const maxURL = 500

// link is a link to an address that the forge told, plain text if that is odd.
func link(text, url string) string {
	if len(url) > maxURL || !safeURL().MatchString(url) {
		return text
	}
	return "[" + text + "](" + url + ")"
}

// Counted is a count with its noun.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if noun == "person" {
		return fmt.Sprintf("%d people", n)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
