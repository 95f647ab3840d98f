package html

import (
	"bytes"
	"embed"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

// constant is markup that stands in the source of this program. No other package
// can name the type, and a string does not convert to it by itself: what comes
// from elsewhere cannot be markup, or the program does not compile.
type constant string

// A Body is markup in the making. Markup and names of attributes are constants of
// this program; everything else is text, and is escaped, with each character that
// does not show as an escape of its own (T14, T76). Nothing ever stands in an
// attribute without quotation marks, in a script or in a style.
//
// What is more than a line of it is a template (see Templates), in which the same holds.
type Body struct{ b []byte }

// Markup adds markup.
func (b *Body) Markup(markup constant) *Body {
	b.b = append(b.b, markup...)
	return b
}

// Lines adds text of several lines, for an element that keeps white space.
func (b *Body) Lines(text string) *Body {
	b.b = appendText(b.b, text, "\n\t", true)
	return b
}

// Put adds markup in which each {} is the place of a part: a text, which is escaped as between
// elements or as in an attribute, wherever it stands; a number; another body; or nil for nothing.
func (b *Body) Put(markup constant, parts ...any) *Body {
	rest := string(markup)
	for _, part := range parts {
		before, after, ok := strings.Cut(rest, "{}")
		if !ok {
			panic("html: no place for a part: " + string(markup))
		}
		b.Markup(constant(before))
		rest = after
		b.b = put(b.b, part)
	}
	if strings.Contains(rest, "{}") {
		panic("html: a place without its part: " + string(markup))
	}
	return b.Markup(constant(rest))
}

// put adds a part to markup.
func put(out []byte, part any) []byte {
	switch part := part.(type) {
	case string:
		return appendText(out, part, "", !inAttribute(out))
	case int:
		return strconv.AppendInt(out, int64(part), 10)
	case *Body:
		if inAttribute(out) {
			panic("html: markup in an attribute: " + string(part.b))
		}
		return append(out, part.b...)
	case nil:
		return out
	}
	panic(fmt.Sprintf("html: a %T is no part", part))
}

// inAttribute reports whether markup ends between the quotation marks of an attribute. In a tag text can
// be nowhere else. What is text has none of these signs.
func inAttribute(markup []byte) bool {
	at := bytes.LastIndexAny(markup, "<>")
	if at < 0 || markup[at] == '>' {
		return false
	}
	if bytes.Count(markup[at:], []byte(`"`))%2 == 0 {
		panic("html: text in a tag: " + string(markup[at:]))
	}
	return true
}

// Templates are those of a package's files, with functions of its own beside those that all have.
func Templates(files embed.FS, funcs template.Funcs) func() *template.Set {
	return sync.OnceValue(func() *template.Set {
		all := template.Funcs{
			"code": Code, "time": When, "link": To, "plural": ledger.Plural, "upper": view.Upper, "string": func(text any) string { return fmt.Sprint(text) },
			"lines": func(text string) *Body { return new(Body).Lines(text) },
		}
		maps.Copy(all, funcs)
		return template.Parse(files, put, all)
	})
}

// Fill fills in a template, in which each value is a part as Put takes it.
func Fill(templates func() *template.Set, name string, data any, more template.Funcs) *Body {
	return &Body{templates().Fill(nil, name, data, more)}
}

// Part is a body of its own.
func Part(markup constant, parts ...any) *Body { return new(Body).Put(markup, parts...) }

// Code is text as code, letter by letter.
func Code(text string) *Body { return Part("<code>{}</code>", text) }

// To is text that leads to an address, and the text alone unless the address is a relative
// one of plain letters, such as ../../tx/ID.html#diff, or begins with
// http:// or https:// and has only what an address is written with.
func To(address, text string) *Body {
	switch {
	case len(address) > maxAddress:
	case web().MatchString(address):
		return Part(`<a href="{}" rel="noopener noreferrer">{}</a>`, address, text)
	case relative().MatchString(address):
		return Part(`<a href="{}">{}</a>`, address, text)
	}
	return Part("{}", text)
}

// Add adds another body.
func (b *Body) Add(other *Body) *Body {
	b.b = append(b.b, other.b...)
	return b
}

// Len is how many bytes there are so far.
func (b *Body) Len() int { return len(b.b) }

// appendText escapes text. What does not show becomes an escape, marked if it may be; the
// characters of also stay.
func appendText(out []byte, text, also string, mark bool) []byte {
	plain := 0  // from here to i nothing is to be changed
	marked := 0 // where out ended after a mark
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f && c != '<' && c != '>' && c != '&' && c != '"' && c != '\'' {
			i++
			continue
		}
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		raw := text[i : i+size]
		as := entities[r]
		if as == "" {
			as = escape.Show(r, raw)
		}
		if as == raw || r < 0x80 && strings.IndexByte(also, c) >= 0 {
			i += size
			continue
		}
		out = append(out, text[plain:i]...)
		switch {
		case !mark || as[0] == '&':
			out = append(out, as...)
		case marked > 0 && len(out) == marked: // one mark for all that stand together: a browser chokes on a million
			out = append(append(out[:marked-len(markEnd)], as...), markEnd...)
		default:
			out = append(append(append(out, markBegin...), as...), markEnd...)
		}
		if mark && as[0] != '&' {
			marked = len(out)
		}
		i += size
		plain = i
	}
	return append(out, text[plain:]...)
}

// entities are those of the characters that mean something in HTML.
var entities = map[rune]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&#34;", '\'': "&#39;"}

// A mark stands around escapes.
const markBegin, markEnd = `<span class="hidden">`, `</span>`

// maxAddress bounds an address, in bytes.
const maxAddress = 500

var (
	web      = canon.Regexp(`^https?://[0-9A-Za-z./_:#?=&%~+-]+$`)
	relative = canon.Regexp(`^[0-9A-Za-z._#-][0-9A-Za-z./_#-]*$`)
)
