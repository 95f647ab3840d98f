package report

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/difflook"
	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

// A Style colours text, or leaves it as it is. Zone is the reader's, in which times are told
// beside UTC; nil is UTC.
type Style struct {
	Colour bool
	Zone   *time.Location
	Top    string // of the working tree, as it is typed where the reader is; "" is there
}

// when is a time in the reader's zone, which it names: Z is UTC.
func (s Style) when(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return Clean(at)
	}
	if s.Zone != nil {
		t = t.In(s.Zone)
	}
	zone := t.Format(" MST")
	if _, offset := t.Zone(); offset == 0 {
		zone = "Z"
	}
	return t.Format("2006-01-02 15:04") + zone
}

// Terminal colours (ECMA-48 SGR).
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	invert = "7"
)

func (s Style) paint(code, text string) string {
	if !s.Colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// found says where the hunks of a patch were found, if that is not where they say, "" otherwise.
func (r Report) found() string {
	var all []string
	for _, o := range r.Offsets {
		if text := difflook.Moved(o); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return Clean(strings.Join(all, ", ")) + " than the patch says"
}

// moved says which files are not any more as the review found them, "" where none is.
func (r Report) moved() string {
	if len(r.Moved) == 0 {
		return ""
	}
	return Clean(plain.QuoteList(r.Moved)) + " changed meanwhile"
}

func fileName(f File) string {
	if f.From != "" {
		return Clean(f.From) + " → " + Clean(f.Path)
	}
	return Clean(f.Path)
}

// Stat is the changed files, a line each: their names alone, or with the lines that each changes.
func Stat(r Report, namesOnly bool) string {
	name := map[bool]string{true: "names", false: "stat"}[namesOnly]
	return Style{}.with(name, r.View().Files, template.Funcs{"filesLine": r.filesLine})
}

func (r Report) filesLine() string {
	added, deleted := r.View().Lines()
	return fmt.Sprintf("%s, +%d −%d", Counted(len(r.Files), "file"), added, deleted)
}

// maxRows is how many files the text lists; --json lists all.
const maxRows = 40

// author is whom the patch names.
func (r Report) author() string {
	if r.Author == nil {
		return ""
	}
	return fmt.Sprintf("%s <%s>, %s (from the patch, not verified)", Clean(r.Author.Name), Clean(r.Author.Email), Clean(r.Author.Date))
}

// Clean makes foreign text safe in one line on a terminal or in a log: what
// does not print (controls, bidi, zero width) is shown as an escape (T14).
func Clean(text string) string { return markdown.Clean(text) }

// ErrorLine is an error as it is shown: one line, nothing that does not print.
func ErrorLine(err error) string { return Clean(strings.ReplaceAll(err.Error(), "\n", "; ")) }

// EscapeJSON writes what does not show in a JSON document, which is UTF-8 and
// stands in one line, with JSON's escapes (RFC 8259, section 7).
func EscapeJSON(doc string) string {
	var b strings.Builder
	for _, r := range doc {
		switch {
		case ledger.Visible(r) || r == '\n':
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Red is text in the colour of errors.
func (s Style) Red(text string) string { return s.paint(red, text) }

// Bold is text that stands out.
func (s Style) Bold(text string) string { return s.paint(bold, text) }

// Diff shows canonical bytes to a person: coloured by line, and with every
// character that does not print, and every byte that is not UTF-8, shown as an
// escape, so that nothing in the patch can move the cursor, hide or reorder text
// (T14, T71). A note below it says where escapes stand, since a patch may also
// hold text that only looks like one. It is for eyes; the bytes themselves are
// what is approved.
func Diff(diff []byte, s Style) string {
	var b strings.Builder
	var escaped []int
	n := 0
	for l := range difflook.Lines(diff) {
		n++
		text := strings.TrimSuffix(string(l.Raw), "\n")
		if plain := (Style{}).reveal(text); plain != text && plain+"\r" != text {
			escaped = append(escaped, n)
		}
		b.WriteString(s.diffLine(l))
		b.WriteByte('\n')
	}
	if len(escaped) > 0 {
		b.WriteString(s.paint(yellow, "Escapes such as \\x1b stand for what does not show in "+lineNumbers(escaped)+" of this diff.") + "\n")
	}
	return b.String()
}

func (s Style) diffLine(l difflook.Line) string {
	return s.paint(marks[l.Mark], s.reveal(strings.TrimSuffix(string(l.Raw), "\n")))
}

// marks are the colours of a diff's lines.
var marks = map[byte]string{'@': cyan, 0: bold, '+': green, '-': red}

// reveal is Clean for a line of a diff: tabs stay, and escapes stand out. The
// carriage return that ends an unchanged line is left out; on a changed one it
// may be all that changed.
func (s Style) reveal(text string) string {
	if strings.HasPrefix(text, " ") {
		text = strings.TrimSuffix(text, "\r")
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if v := markdown.Show(r, text[:size]); v == text[:size] || r == '\t' {
			b.WriteString(text[:size])
		} else {
			b.WriteString(s.paint(invert, v))
		}
		text = text[size:]
	}
	return b.String()
}

// DiffKey and DiffBytesKey are the members of a document that hold a whole diff.
const (
	DiffKey      = "diff"
	DiffBytesKey = "diff_base64"
)

// DiffDocument is a transaction's diff as JSON. A string of JSON holds no bytes that are not
// UTF-8: where there are some they are escaped as for a person, and the bytes themselves
// stand beside it (T71).
func DiffDocument(id, diff string) map[string]any {
	doc := map[string]any{"transaction_id": id, DiffKey: diff}
	if !utf8.ValidString(diff) {
		doc[DiffKey] = writing.EscapeBytes(diff)
		doc[DiffBytesKey] = base64.StdEncoding.EncodeToString([]byte(diff))
	}
	return doc
}

// ShellQuote writes a word so that a POSIX shell reads it as it is.
func ShellQuote(word string) string { return view.ShellQuote(word) }

// ShellWords are some words for a shell, with a space between them.
func ShellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = ShellQuote(word)
	}
	return strings.Join(quoted, " ")
}

// Events are a transaction's events, a line each.
func Events(log *ledger.Log) string {
	var b strings.Builder
	for i, p := range log.Payloads() {
		said, name := "", strings.TrimPrefix(fmt.Sprintf("%T", p), "*ledger.")
		if texts().Has(name) {
			said = Style{}.fill(name, p)
		}
		b.WriteString(Style{}.fill("event", struct {
			ledger.Event
			Text template.Safe
		}{log.Events()[i], template.Safe(said)}))
	}
	return b.String()
}

// ShortHash is enough of a hash for a person to compare it with the whole one: both
// ends, as a text made to look alike would have to match 96 bits.
func ShortHash(id string) string { return id[:12] + "…" + id[len(id)-12:] }
