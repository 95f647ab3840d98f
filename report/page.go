package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/view"
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

func (l list) missing(n int) string {
	if n == 0 {
		return "\n"
	}
	return fmt.Sprintf("\n**Cut:** %s not shown here%s.\n\n", Counted(n, l.noun), l.all)
}

// Foreign text stands in Markdown in one of three ways: prose, code and fenced
// (package escape).
var (
	prose, words, code, name = escape.Prose, escape.Words, escape.Code, escape.Name
	fenced, link             = escape.Fenced, escape.Link
	shorten, shortenTo       = escape.Shorten, escape.ShortenTo
	backticks                = escape.Backticks
)

// codes is a list of names, at most most of them.
func codes(names []string, most int) string {
	text := view.Joined(names[:min(len(names), most)], ", ", name)
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// lineBlock is a block with one line to copy.
func lineBlock(line string) string { return fenced("text", Clean(line)) }

// Counted is a count with its noun.
func Counted(n int, noun string) string {
	switch {
	case noun == "person":
		return ledger.Plural(n, noun, "people")
	case strings.HasSuffix(noun, "h"), strings.HasSuffix(noun, "s"):
		return ledger.Plural(n, noun, noun+"es")
	}
	return ledger.Plural(n, noun, noun+"s")
}
