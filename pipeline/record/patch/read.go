package patch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Diff is canonical bytes that were read and are not yet on a base. It refers
// to the bytes that Parse was given; they must not be modified.
type Diff struct{ Parts []Part }

// A Part is what a Diff says of one file. From is the old path of a Rename.
// Before and After are the modes, 0 where there is no file.
type Part struct {
	Line          int // the number of its first line, from 1
	Kind          Kind
	Path, From    string
	Before, After Mode
	OldID, NewID  string // the blob ids of the index line
	Hunks         []Hunk
	Binary        bool
	Data          []byte // the content after of a binary file
}

// Old is the path of the file before.
func (p Part) Old() string { return cmp.Or(p.From, p.Path) }

// A Hunk is one "@@" part of a text: OldLines lines after the first At become
// NewLines ones. Body is its lines, of ' ', '-' or '+' and text, each with its
// LF, and behind one that has none the line that says so.
type Hunk struct {
	At, OldLines, NewLines int
	Body                   []byte
}

// Lines calls yield with each line: its mark, and the text with its LF, if it has one.
func (h Hunk) Lines(yield func(mark byte, text []byte) bool) {
	for rest := h.Body; len(rest) > 0; {
		var line []byte
		if line, rest = CutLine(rest); bytes.HasPrefix(rest, []byte(noNewline)) {
			line, rest = line[:len(line)-1], rest[len(noNewline):]
		}
		if !yield(line[0], line[1:]) {
			return
		}
	}
}

// CutLine returns the first line with its LF, and what follows.
func CutLine(b []byte) (line, rest []byte) {
	end := bytes.IndexByte(b, '\n') + 1
	if end == 0 {
		end = len(b)
	}
	return b[:end], b[end:]
}

// Parse reads canonical bytes without their base: it refuses with an *Error what
// Patchset.Bytes does not write for any (docs/spec/patch.md, P-25). What they
// show of a file's content may be redacted; Agrees tells, and what it is put on.
func Parse(raw []byte) (Diff, error) {
	var d Diff
	r := reader{rest: raw}
	seen := map[string]bool{}
	for len(r.rest) > 0 {
		p, err := r.part()
		if err == nil && len(d.Parts) > 0 && d.Parts[len(d.Parts)-1].Path >= p.Path {
			err = errors.New("is not behind the file before it in the order of paths")
		}
		for _, name := range []string{p.Path, p.From} {
			if err == nil && name != "" {
				err = CheckPath(name)
			}
			if err == nil && seen[name] {
				err = errors.New("path appears twice in the patch")
			}
			seen[name] = name != ""
		}
		if err != nil {
			return Diff{}, At(asError(err), p.Line, p.Path)
		}
		d.Parts = append(d.Parts, p)
	}
	if len(d.Parts) == 0 {
		return Diff{}, &Error{Message: "the patch is empty"}
	}
	return d, nil
}

func asError(err error) error {
	if errors.As(err, new(*Error)) {
		return err
	}
	return &Error{Message: err.Error()}
}

// A reader walks canonical bytes.
type reader struct {
	rest []byte
	line int // the number of lines that were read
}

func (r *reader) next() (line []byte) {
	line, r.rest = CutLine(r.rest)
	r.line++
	return line
}

func (r *reader) at(text string) bool { return bytes.HasPrefix(r.rest, []byte(text)) }

// value returns what follows a word at the beginning of the next line, and reads that line.
func (r *reader) value(word string) (string, bool) {
	if !r.at(word) {
		return "", false
	}
	return strings.TrimSuffix(string(r.next()[len(word):]), "\n"), true
}

// part reads one file. What is read of its header is written again, and must be what stands there.
func (r *reader) part() (Part, error) {
	start := r.rest
	p := Part{Line: r.line + 1, Kind: Update}
	title, _ := r.value("diff --git ")
	p.Path = strings.TrimPrefix(unquote(title[(len(title)+1)/2:]), "b/")
	if mode, made := r.value("new file mode "); made {
		p.Kind, p.After = Add, parseMode(mode)
	} else if mode, gone := r.value("deleted file mode "); gone {
		p.Kind, p.Before = Delete, parseMode(mode)
	} else if mode, changes := r.value("old mode "); changes {
		p.Before = parseMode(mode)
		mode, _ = r.value("new mode ")
		p.After = parseMode(mode)
	}
	if _, renamed := r.value("similarity index "); renamed {
		from, _ := r.value("rename from ")
		to, _ := r.value("rename to ")
		p.Kind, p.From, p.Path = Rename, unquote(from), unquote(to)
	}
	index, _ := r.value("index ")
	index, mode, both := strings.Cut(index, " ")
	if both {
		p.Before, p.After = parseMode(mode), parseMode(mode)
	}
	p.OldID, p.NewID, _ = strings.Cut(index, "..")
	head := start[:len(start)-len(r.rest)]
	switch {
	case string(head) != p.header() || (p.Before == 0) != (p.Kind == Add) || (p.After == 0) != (p.Kind == Delete):
		return p, errors.New("its header is not in canonical form")
	case len(p.OldID) != len(absentID) || len(p.NewID) != len(absentID) || strings.Trim(p.OldID+p.NewID, "0123456789abcdef") != "":
		return p, errors.New("its index line does not name two contents")
	case (p.OldID == absentID) != (p.Before == 0) || (p.NewID == absentID) != (p.After == 0):
		return p, errors.New("its header disagrees on what happens to the file")
	}
	return p, r.content(&p)
}

func parseMode(mode string) Mode {
	for _, m := range []Mode{Regular, Executable} {
		if m.String() == mode {
			return m
		}
	}
	return 0
}

func unquote(name string) string {
	if !strings.HasPrefix(name, `"`) {
		return name
	}
	return strings.ReplaceAll(name[1:max(1, len(name)-1)], `\"`, `"`)
}

// content reads what follows a header: something, if the bytes are others afterwards, of which an
// absent file has none.
func (r *reader) content(p *Part) error {
	blob := func(id string) string { return strings.Replace(id, absentID, (&File{}).BlobID(), 1) }
	changes := blob(p.OldID) != blob(p.NewID)
	switch {
	case !changes && p.Kind == Update && p.Before == p.After:
		return errors.New("file section without a change")
	case !changes:
		return nil
	case p.Kind == Rename:
		return errors.New("a rename changes nothing of the content")
	case r.at(binaryMark):
		return r.binary(p)
	case !r.at(p.Names()):
		return errors.New("its content is missing, or not in canonical form")
	}
	r.next()
	r.next()
	return r.hunks(p)
}

// binary reads a literal. It is written again, and must be what stands there.
func (r *reader) binary(p *Part) error {
	start, stream := r.rest, []byte(nil)
	r.next()
	r.next()
	for len(r.rest) > 0 {
		line := bytes.TrimSuffix(r.next(), []byte("\n"))
		if len(line) == 0 {
			break
		}
		for digits := range slices.Chunk(line[1:], 5) {
			n := uint32(0)
			for _, digit := range digits {
				n = 85*n + uint32(strings.IndexByte(base85, digit)) // what is no digit is found below
			}
			stream = binary.BigEndian.AppendUint32(stream, n)
		}
	}
	p.Binary, p.Data = true, stored(stream)
	var again bytes.Buffer
	writeBinary(&again, p.Data)
	switch {
	case !bytes.Equal(again.Bytes(), start[:len(start)-len(r.rest)]):
		return errors.New("its binary content is not in canonical form")
	case p.Kind == Add && !isBinary(p.Data), p.Kind == Delete && len(p.Data) > 0:
		return errors.New("its content is not binary")
	}
	return nil
}

// stored is the content of a zlib stream of stored blocks, or anything, of one that storedZlib did not make.
func stored(stream []byte) (data []byte) {
	for at, last := 2, false; !last && at+5 <= len(stream); {
		size := int(binary.LittleEndian.Uint16(stream[at+1:]))
		last, at = stream[at] == 1, at+5
		data = append(data, stream[at:min(at+size, len(stream))]...)
		at += size
	}
	return data
}

// hunks reads those of one file. They are in order, and the places in the new file follow from those
// in the old one.
func (r *reader) hunks(p *Part) error {
	end, shift, ended := 0, 0, false // of the last hunk: where it ends, how far lines moved so far, whether a side has no more
	for r.at("@@ ") {
		line := string(r.next())
		old, new, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "@@ -"), " @@\n"), " +")
		h, at := Hunk{}, 0
		h.At, h.OldLines = parseRange(old)
		at, h.NewLines = parseRange(new)
		switch {
		case line != hunkHeader(h.At, h.OldLines, at, h.NewLines):
			return r.fail("malformed hunk header")
		case ended || h.At < end || at != h.At+shift:
			return r.fail("hunk overlaps the one before, or is out of order")
		case p.Kind == Add && h.OldLines > 0 || p.Kind == Delete && h.NewLines > 0 || p.Kind != Update && (h.At > 0 || len(p.Hunks) > 0):
			return r.fail("a new or deleted file has one hunk, of all its lines")
		}
		var err error
		if ended, err = r.body(&h); err != nil {
			return err
		}
		end, shift = h.At+h.OldLines, shift+h.NewLines-h.OldLines
		p.Hunks = append(p.Hunks, h)
	}
	if len(p.Hunks) == 0 {
		return r.fail("file section without a change")
	}
	return nil
}

func (r *reader) fail(message string) error { return &Error{Line: r.line, Message: message} }

// parseRange reads what hunkRange writes, or anything: it is written again.
func parseRange(text string) (start, lines int) {
	first, length, whole := strings.Cut(text, ",")
	number := func(s string) int {
		n, _ := strconv.ParseUint(s, 10, 31)
		return int(n)
	}
	if start, lines = number(first), 1; whole {
		lines = number(length)
	}
	if lines > 0 {
		start--
	}
	return start, lines
}

// body reads as many lines as the header of a hunk counts. ended says that a side ends in a line
// without LF.
func (r *reader) body(h *Hunk) (ended bool, err error) {
	start, last := r.rest, byte(0)
	changes, oldEnded, newEnded := false, false, false
	for old, new := h.OldLines, h.NewLines; old > 0 || new > 0; {
		line := r.next()
		if len(line) < 2 || strings.IndexByte(" -+", line[0]) < 0 {
			return false, r.fail("hunk has other lines than its counts say")
		}
		mark := line[0]
		if mark != '+' {
			old--
		}
		if mark != '-' {
			new--
		}
		switch {
		case old < 0 || new < 0 || line[len(line)-1] != '\n':
			return false, r.fail("hunk has other lines than its counts say")
		case mark == '-' && last == '+':
			return false, r.fail("a line that goes is behind one that comes")
		case bytes.IndexByte(line, 0) >= 0:
			return false, r.fail("a text with a NUL byte")
		case mark != '+' && oldEnded || mark != '-' && newEnded:
			return false, r.fail("a line without its newline is not the last one")
		}
		last, changes = mark, changes || mark != ' '
		if r.at(noNewline) {
			r.next()
			oldEnded, newEnded = oldEnded || mark != '+', newEnded || mark != '-'
			if len(line) == 2 {
				return false, r.fail("no line for the missing newline")
			}
		}
	}
	if h.Body = start[:len(start)-len(r.rest)]; !changes {
		return false, r.fail("hunk without a change")
	}
	return oldEnded || newEnded, nil
}

var errSays = errors.New("the files that it names are not those of its patch")

// Agrees holds canonical bytes to what is said of them: the paths that they touch, sorted, and the "sha256:…" of each file
// before and after, nil if there is none. Without the base, content is held where the Diff shows all of a file, or that it
// stays; contents says whether it is what it was, and not without its secrets. Modes are not looked at.
func (d Diff) Agrees(files []string, before, after map[string]*string, contents bool) error {
	var paths []string
	for _, p := range d.Parts {
		if !p.agrees(before, after, contents) {
			return errSays
		}
		if paths = append(paths, p.Path); p.Kind == Rename {
			paths = append(paths, p.From)
		}
	}
	slices.Sort(paths)
	if !slices.Equal(paths, files) || !slices.Equal(paths, slices.Sorted(maps.Keys(before))) || !slices.Equal(paths, slices.Sorted(maps.Keys(after))) {
		return errSays
	}
	return nil
}

func (p Part) agrees(before, after map[string]*string, contents bool) bool {
	was, is := before[p.Old()], after[p.Path]
	switch {
	case (was == nil) != (p.Before == 0) || (is == nil) != (p.After == 0):
		return false
	case p.Kind == Rename && (before[p.Path] != nil || after[p.From] != nil):
		return false
	case p.OldID == p.NewID:
		return *was == *is
	case !contents:
		return true
	case p.Kind == Add || p.Binary && p.Kind == Update:
		f := File{Data: p.Data}
		if !p.Binary {
			f.Data = p.whole()
		}
		return *is == *f.Sum() && p.NewID == f.BlobID()
	case p.Kind == Delete && !p.Binary:
		f := File{Data: p.whole()}
		return *was == *f.Sum() && p.OldID == f.BlobID()
	}
	return true
}

// whole is the content of a file all of whose lines are new, or gone.
func (p Part) whole() (out []byte) {
	for _, h := range p.Hunks {
		for _, text := range h.Lines {
			out = append(out, text...)
		}
	}
	return out
}
