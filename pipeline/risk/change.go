package risk

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// ofChange lists the risks of one change, in no certain order. secrets are the
// lines that hold some, of which no word is named.
func ofChange(c patch.Change, secrets []int) []Risk {
	var out []Risk
	add := func(k Kind, detail string) {
		out = append(out, Risk{Kind: k, Path: c.Path, From: c.From, Detail: detail})
	}

	if c.After != nil && c.After.Mode == patch.Executable {
		switch {
		case c.Before == nil:
			add(Executable, "a new file")
		case c.Before.Mode != patch.Executable:
			add(Executable, "")
		}
	} else if c.After != nil && c.Before != nil && c.Before.Mode == patch.Executable {
		add(Mode, "")
	}
	for _, name := range sides(c) {
		out = append(out, ofName(name)...)
	}
	switch c.Kind {
	case patch.Delete:
		add(Delete, contentSize(c.Before.Data))
	case patch.Rename:
		add(Rename, "")
		return out // of the same bytes
	}
	lines, binary := addedLines(c)
	if binary {
		add(Binary, binaryDetail(c))
		return out
	}
	if c.Before != nil && c.After != nil && !bytes.Equal(c.Before.Data, c.After.Data) && bytes.Equal(withoutSpace(c.Before.Data), withoutSpace(c.After.Data)) {
		add(Whitespace, lineEndings(c.Before.Data, c.After.Data))
	}
	if c.After != nil {
		if reason := cmp.Or(generated(c.After.Data), generatedName(c.Path)); reason != "" {
			add(Generated, reason)
		}
	}
	if c.After != nil && onlyCRLF(c.After.Data) && c.Before != nil && onlyCRLF(c.Before.Data) {
		for i := range lines {
			lines[i].Text = bytes.TrimSuffix(lines[i].Text, []byte("\r"))
		}
	}
	return append(out, inLines(c.Path, lines, secrets)...)
}

// onlyCRLF reports whether all lines of a file end with a carriage return and a line feed.
func onlyCRLF(data []byte) bool {
	n := bytes.Count(data, []byte("\r\n"))
	return n > 0 && n == bytes.Count(data, []byte("\n")) && n == bytes.Count(data, []byte("\r"))
}

// ofPart lists the risks of what a diff itself says of a file, in no certain
// order: not those for which the file has to be seen before or after.
func ofPart(p patch.Part, added []gitpatch.Line, lost int, secrets []int) []Risk {
	var out []Risk
	add := func(k Kind, detail string) {
		out = append(out, Risk{Kind: k, Path: p.Path, From: p.From, Detail: detail})
	}
	switch {
	case p.After == patch.Executable && p.Kind == patch.Add:
		add(Executable, "a new file")
	case p.After == patch.Executable && p.Before != patch.Executable:
		add(Executable, "")
	case p.Before == patch.Executable && p.After == patch.Regular:
		add(Mode, "")
	}
	for _, name := range sides(patch.Change{Kind: p.Kind, Path: p.Path, From: p.From}) {
		out = append(out, ofName(name)...)
	}
	switch {
	case p.Kind == patch.Delete && p.Binary:
		add(Delete, "binary")
	case p.Kind == patch.Delete:
		add(Delete, lineCount(lost))
	case p.Kind == patch.Rename:
		add(Rename, "")
	}
	if p.Binary {
		add(Binary, "its content was not read")
	} else if reason := generatedName(p.Path); reason != "" && p.Kind != patch.Delete && p.Kind != patch.Rename {
		add(Generated, reason)
	}
	return append(out, inLines(p.Path, added, secrets)...)
}

// ofName lists the risks of a path as such.
func ofName(name string) []Risk {
	var out []Risk
	for _, w := range watchedNames(name) {
		out = append(out, Risk{Kind: w.kind, Path: name, Detail: w.reason})
	}
	if !ascii([]byte(name)) {
		var letters []string
		for _, r := range strings.Join(lookalikes(name), "") {
			if one := escapeWord(string(r)); r >= utf8.RuneSelf && !slices.Contains(letters, one) && len(letters) < maxLines {
				letters = append(letters, one)
			}
		}
		if letters != nil {
			out = append(out, Risk{Kind: Lookalike, Path: name, Detail: strings.Join(letters, " ") + " in its name"})
		}
		for _, escape := range hiddenIn([]byte(name)) {
			out = append(out, Risk{Kind: Hidden, Path: name, Detail: escape + " in its name"})
		}
		if reordered(name) {
			out = append(out, Risk{Kind: Hidden, Path: name, Detail: "right-to-left letters reorder its name"})
		}
	}
	if behindBlanks([]byte(name)) {
		out = append(out, Risk{Kind: Hidden, Path: name, Detail: besideBlanks + " in its name"})
	}
	return out
}

// sides are the paths that a change touches.
func sides(c patch.Change) []string {
	if c.Kind == patch.Rename {
		return []string{c.From, c.Path}
	}
	return []string{c.Path}
}

// addedLines reads the lines that a change adds out of its canonical bytes, so
// that they are those which a reader of the diff sees, or tells that it is binary.
func addedLines(c patch.Change) (out []gitpatch.Line, binary bool) {
	for l := range gitpatch.Lines(c.Bytes()) {
		if l.Mark == '+' {
			out = append(out, l)
		}
		if l.Mark == 0 && string(l.Text) == "GIT binary patch" {
			return nil, true
		}
	}
	return out, false
}

// contentSize is how much text or how many bytes a file has.
func contentSize(data []byte) string {
	lines := bytes.Count(data, []byte("\n"))
	switch {
	case len(data) == 0:
		return "empty"
	case bytes.IndexByte(data, 0) >= 0:
		return byteCount(len(data))
	case data[len(data)-1] != '\n':
		lines++
	}
	return lineCount(lines)
}

func lineCount(n int) string {
	switch n {
	case 0:
		return "empty"
	case 1:
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

func byteCount(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// binaryDetail is what becomes of binary content: "PNG image, 120 → 4096 bytes".
func binaryDetail(c patch.Change) string {
	switch {
	case c.Before == nil:
		return Format(c.After.Data) + ", " + byteCount(len(c.After.Data))
	case c.After == nil:
		return Format(c.Before.Data) + ", " + byteCount(len(c.Before.Data)) + ", deleted"
	}
	was, is := Format(c.Before.Data), Format(c.After.Data)
	if was != is {
		is = was + " → " + is
	}
	return fmt.Sprintf("%s, %d → %s", is, len(c.Before.Data), byteCount(len(c.After.Data)))
}

// formats are known by how they begin.
var formats = []struct{ begins, name string }{
	{"\x7fELF", "ELF program"},
	{"MZ", "Windows program"},
	{"\xcf\xfa\xed\xfe", "macOS program"},
	{"\xfe\xed\xfa\xcf", "macOS program"},
	{"\xca\xfe\xba\xbe", "Java class or macOS program"},
	{"\x00asm", "WebAssembly"},
	{"!<arch>\n", "library archive"},
	{"PK\x03\x04", "zip archive"},
	{"\x1f\x8b", "gzip archive"},
	{"BZh", "bzip2 archive"},
	{"\xfd7zXZ\x00", "xz archive"},
	{"(\xb5/\xfd", "zstd archive"},
	{"7z\xbc\xaf\x27\x1c", "7z archive"},
	{"\x89PNG\r\n\x1a\n", "PNG image"},
	{"\xff\xd8\xff", "JPEG image"},
	{"GIF8", "GIF image"},
	{"RIFF", "RIFF media"},
	{"%PDF-", "PDF document"},
	{"SQLite format 3\x00", "SQLite database"},
	{"wOF2", "font"},
	{"\xff\xfe", "text in UTF-16"},
	{"\xfe\xff", "text in UTF-16"},
}

// Format is what kind of file begins so, in words.
func Format(data []byte) string {
	if len(data) == 0 {
		return "empty"
	}
	for _, f := range formats {
		if bytes.HasPrefix(data, []byte(f.begins)) {
			return f.name
		}
	}
	return "data of no known type"
}

func withoutSpace(data []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, toRunes(data))
}

// toRunes keeps bytes that are not UTF-8 apart from the replacement character that
// bytes.Map would make of them all.
func toRunes(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	out := make([]byte, 0, len(data)*2)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			out = fmt.Appendf(out, "\\x%02x", data[0])
		} else {
			out = append(out, data[:n]...)
		}
		data = data[n:]
	}
	return out
}

// lineEndings says what becomes of the ends of lines where nothing but white space changes.
func lineEndings(before, after []byte) string {
	was, is := bytes.Count(before, []byte("\r\n")), bytes.Count(after, []byte("\r\n"))
	switch {
	case is > was:
		return "line endings become CRLF"
	case is < was:
		return "line endings become LF"
	case !slices.EqualFunc(textLines(before), textLines(after), bytes.Equal):
		return "lines end elsewhere"
	}
	return ""
}

// textLines are the lines that have text, without its white space.
func textLines(data []byte) [][]byte {
	var out [][]byte
	for line := range bytes.Lines(data) {
		if line = withoutSpace(line); len(line) > 0 {
			out = append(out, line)
		}
	}
	return out
}

var (
	generatedLine = canon.Regexp(`(?m)^.{0,8}Code generated .{0,200} DO NOT EDIT\.|@generated\b`)
	minifiedName  = canon.Regexp(`(?i)[.-]min\.(js|mjs|cjs|css)$|\.(js|css)\.map$|\.bundle\.js$`)
	foldedName    = canon.Regexp(`(?i)(^|/)(vendor|node_modules|third_party|bower_components|Godeps|__generated__|dist)/|` +
		`\.pb(\.gw)?\.(go|cc|h|js|ts|rb|py)$|_pb2(_grpc)?\.pyi?$|[._]generated\.\w+$|(^|/)zz_generated\.|\.designer\.(cs|vb)$|\.snap$`)
)

// generated says why nobody would read a file.
func generated(data []byte) string {
	switch {
	case generatedLine().Match(data[:min(len(data), 4096)]):
		return "it says that it is generated"
	case len(data) > 2000 && bytes.Count(data, []byte("\n"))*500 < len(data):
		return "lines of more than 500 bytes on average"
	}
	return ""
}

// generatedName says so for a name that forges take for one of generated or copied files,
// which they do not show unasked.
func generatedName(name string) string {
	switch {
	case minifiedName().MatchString(path.Base(name)):
		return "minified, by its name"
	case foldedName().MatchString(name):
		return "generated or copied, by its name"
	}
	return ""
}
