package git

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A FileForm is how a file is checked out. The zero value is as the commit has it.
type FileForm struct {
	eol      lineEnd
	guess    bool   // only what looks like text is converted, and no file with CRLF in the commit
	ident    int    // how many digits the id in $Id$ has; 0 for none
	encoding string // "" or a key of encodings
	program  *program
}

// A program is a filter for the file at a path.
type program struct {
	Filter
	name, path string
	runs       func(command, path string, in []byte) ([]byte, error)
}

// run gives a file to one of the filter's commands. A failure is always an error; Git
// goes on with the file as it is, unless the filter is required.
func (p *program) run(word, command string, in []byte) ([]byte, error) {
	refused := func(why string) error { return &UnsupportedError{p.path, "filter=" + p.name, why} }
	if command == "" && p.Required {
		return nil, refused("it is required, and has no program to " + word + " with")
	}
	if command == "" {
		return in, nil
	}
	out, err := p.runs(command, p.path, in)
	if err != nil {
		return nil, refused(fmt.Sprintf("filter.%s.%s failed: %v", p.name, word, err))
	}
	return out, nil
}

// smudge is what the filter makes of content, if it makes that content of it again.
func (p *program) smudge(in []byte) ([]byte, error) {
	out, err := p.run("smudge", p.Smudge, in)
	if err != nil {
		return nil, err
	}
	if back, err := p.run("clean", p.Clean, out); err != nil || !bytes.Equal(back, in) {
		return nil, cmp.Or(err, error(&UnsupportedError{p.path, "filter=" + p.name, "it does not bring back the commit's content from what it writes"}))
	}
	return out, nil
}

// IsFiltered reports whether a program takes part.
func (f FileForm) IsFiltered() bool { return f.program != nil }

// lineEnd says how lines end in the working tree; all but asIs end in LF in a
// commit.
type lineEnd int

const (
	asIs lineEnd = iota
	lf
	crlf
)

// An UnsupportedError is an attribute that this program cannot do as Git does.
type UnsupportedError struct {
	Path      string
	Attribute string // as it is written, such as "filter=lfs"
	Why       string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%+q has the attribute %+q: %s", e.Path, e.Attribute, e.Why)
}

func (*UnsupportedError) Hint() string { return "countersign run TX --to branch" }

// ErrNotUTF8 is content that an encoding cannot hold.
var ErrNotUTF8 = errors.New("it is not UTF-8, as the attribute wants every file of a commit to be")

// Form returns how the file at a path is checked out, or an *UnsupportedError.
func (r *AttributeRules) Form(ctx context.Context, name string) (FileForm, error) {
	r.mu.Lock()
	err := r.ask(ctx, []string{name})
	said := r.said[name]
	r.mu.Unlock()
	if err != nil {
		return FileForm{}, err
	}
	f := r.config.lineEnds(said)
	if said["ident"] == "set" {
		f.ident = cmp.Or(r.config.digits, 40)
	}
	driver := said["filter"]
	if filter, found := r.config.Filters[driver]; found {
		if r.config.Run == nil {
			filter.Refused = "the program of a filter is not run here"
		}
		if filter.Refused != "" {
			return f, &UnsupportedError{name, "filter=" + driver, filter.Refused}
		}
		f.program = &program{filter, driver, name, r.config.Run}
	}
	switch value, specified := said["working-tree-encoding"]; {
	case !specified, strings.EqualFold(value, "utf-8"), strings.EqualFold(value, "utf8"):
	case value == "", value == "set", value == "unset":
		return f, &UnsupportedError{name, "working-tree-encoding", "Git refuses it without an encoding"}
	default:
		f.encoding = strings.ToUpper(value)
		if _, known := encodings[f.encoding]; !known {
			return f, &UnsupportedError{name, "working-tree-encoding=" + value, "of encodings, only UTF-8 and those of UTF-16 are known"}
		}
	}
	return f, nil
}

// lineEnds is Git's decision (convert.c), which takes "crlf", the attribute of
// old, where there is no "text".
func (c Attributes) lineEnds(said map[string]string) (f FileForm) {
	text := said["text"]
	if !decides(text) {
		text = said["crlf"]
	}
	native := crlf
	switch {
	case c.AutoCRLF == "true":
	case c.AutoCRLF == "input":
		native = lf
	case c.EOL != "crlf" && (c.EOL == "lf" || !c.NativeCRLF):
		native = lf
	}
	switch {
	case text == "unset":
		return f
	case said["eol"] == "lf", text == "input":
		f.eol = lf
	case said["eol"] == "crlf":
		f.eol = crlf
	case decides(text):
		f.eol = native
	case c.AutoCRLF == "true" || c.AutoCRLF == "input":
		f.eol = native
	}
	if text == "input" && said["eol"] == "crlf" {
		f.eol = crlf
	}
	f.guess = f.eol != asIs && (text == "auto" || !decides(text) && said["eol"] != "lf" && said["eol"] != "crlf")
	return f
}

// decides reports whether a value of "text" is one that Git knows.
func decides(text string) bool {
	return text == "set" || text == "unset" || text == "auto" || text == "input"
}

// Checkout returns what Git writes to the working tree of a blob. The blob itself
// is returned where that is the same. A filter that fails, or does not bring back what it
// was given, is an *UnsupportedError.
func (f FileForm) Checkout(blob []byte) ([]byte, error) {
	out, err := f.convert(blob)
	if err == nil && f.program != nil {
		out, err = f.program.smudge(out)
	}
	return out, err
}

func (f FileForm) convert(blob []byte) ([]byte, error) {
	out := blob
	if f.ident > 0 {
		out = expandIdent(out, patch.BlobID(blob, f.ident))
	}
	if s := count(out); f.eol == crlf && s.lf > 0 && !(f.guess && (s.crlf > 0 || s.binary())) {
		out = bytes.ReplaceAll(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	if f.encoding == "" || len(out) == 0 {
		return out, nil
	}
	return encodings[f.encoding].encode(out)
}

// Add returns what Git stores of a file of the working tree. blob is what the
// index has, nil for nothing.
func (f FileForm) Add(data, blob []byte) ([]byte, error) {
	if f.program != nil {
		var err error
		if data, err = f.program.run("clean", f.program.Clean, data); err != nil {
			return nil, err
		}
	}
	if f.encoding != "" && len(data) > 0 {
		var err error
		if data, err = encodings[f.encoding].decode(data); err != nil {
			return nil, err
		}
	}
	if f.eol != asIs {
		s := count(data)
		in := count(blob)
		if s.crlf > 0 && !(f.guess && (s.binary() || in.crlf > 0 && !in.binary())) {
			data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
		}
	}
	if f.ident > 0 {
		data = shrinkIdent(data, f.ident)
	}
	return data, nil
}

// Same reports whether Git takes a file of the working tree for the blob: Add returns
// the blob, or it is what Checkout returns. A filter is asked the first alone.
func (f FileForm) Same(data, blob []byte) bool {
	if f.program == nil {
		if out, err := f.Checkout(blob); err == nil && bytes.Equal(out, data) {
			return true
		}
	}
	in, err := f.Add(data, blob)
	return err == nil && bytes.Equal(in, blob)
}

// counts are what Git tells text from other files by.
type counts struct{ nul, cr, lf, crlf, printable, other int }

func count(data []byte) (s counts) {
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\r' && i+1 < len(data) && data[i+1] == '\n':
			s.crlf++
			i++
		case c == '\r':
			s.cr++
		case c == '\n':
			s.lf++
		case c == 0:
			s.nul++
			s.other++
		case c == '\b', c == '\t', c == 0x1b, c == '\f', c >= ' ' && c != 0x7f:
			s.printable++
		default:
			s.other++
		}
	}
	if len(data) > 0 && data[len(data)-1] == 0x1a { // the end of a file of DOS
		s.other--
	}
	return s
}

func (s counts) binary() bool { return s.cr > 0 || s.nul > 0 || s.printable>>7 < s.other }

// expandIdent puts the blob's id into $Id$, and into $Id:…$ unless it looks like
// another system's.
func expandIdent(data []byte, blob string) []byte {
	id := "Id: " + blob + " $"
	return eachIdent(data, func(word []byte) string {
		if inner, ok := bytes.CutPrefix(word, []byte("Id:")); ok {
			inner = inner[:len(inner)-1]
			if len(inner) > 0 {
				if i := bytes.IndexByte(inner[1:], ' '); i >= 0 && i+1 < len(inner)-1 {
					return ""
				}
			}
		}
		return id
	})
}

// shrinkIdent takes back what expandIdent puts in, an id, and nothing else. Git makes
// $Id$ of any text between these signs; then a text that nobody was shown would pass for
// the approved one.
func shrinkIdent(data []byte, digits int) []byte {
	return eachIdent(data, func(word []byte) string {
		if id, ok := bytes.CutPrefix(word, []byte("Id: ")); ok && canon.IsHex(strings.TrimSuffix(string(id), " $"), digits) && bytes.HasSuffix(id, []byte(" $")) {
			return "Id$"
		}
		return ""
	})
}

// eachIdent replaces each "Id$" and "Id:…$" after a "$", of one line, with what do
// returns; "" leaves it alone. Of "$$Id$" the two implementations in Git say
// different things; either comes back as the same blob.
func eachIdent(data []byte, do func(word []byte) string) []byte {
	if !bytes.Contains(data, []byte("$Id")) {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for {
		i := bytes.IndexByte(data, '$')
		if i < 0 {
			return append(out, data...)
		}
		out, data = append(out, data[:i+1]...), data[i+1:]
		size := 0
		switch {
		case bytes.HasPrefix(data, []byte("Id$")):
			size = 3
		case bytes.HasPrefix(data, []byte("Id:")):
			end := bytes.IndexByte(data[3:], '$')
			if end < 0 {
				return append(out, data...)
			}
			if bytes.IndexByte(data[3:3+end], '\n') < 0 {
				size = 3 + end + 1
			}
		}
		if size == 0 {
			continue
		}
		if word := do(data[:size]); word != "" {
			out, data = append(out, word...), data[size:]
		}
	}
}

// An encoding is one of those of UTF-16. With mark, a file begins with a byte
// order mark, which says how it is read; without, Git forbids one.
type encoding struct {
	bigEndian, mark bool
}

func (e encoding) order() interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if e.bigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

var encodings = map[string]encoding{
	"UTF-16":       {mark: true}, // as glibc writes it
	"UTF-16LE":     {},
	"UTF-16BE":     {bigEndian: true},
	"UTF-16LE-BOM": {mark: true},
}

func (e encoding) encode(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, ErrNotUTF8
	}
	var out []byte
	if e.mark {
		out = e.order().AppendUint16(out, 0xfeff)
	}
	for _, unit := range utf16.Encode([]rune(string(text))) {
		out = e.order().AppendUint16(out, unit)
	}
	return out, nil
}

func (e encoding) decode(data []byte) ([]byte, error) {
	bad := errors.New("it is not in the encoding that the attribute says")
	if len(data)%2 != 0 {
		return nil, bad
	}
	marked := len(data) > 1 && (data[0] == 0xff && data[1] == 0xfe || data[0] == 0xfe && data[1] == 0xff)
	if marked != e.mark {
		return nil, bad
	}
	if marked {
		e.bigEndian, data = data[0] == 0xfe, data[2:]
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = e.order().Uint16(data[2*i:])
	}
	text := utf16.Decode(units)
	if !slices.Equal(utf16.Encode(text), units) { // half of a pair
		return nil, bad
	}
	return []byte(string(text)), nil
}
