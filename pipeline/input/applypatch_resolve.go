package input

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Resolve puts the patch on a base, as the tool does on a disk: each file in turn, on
// what those before left.
func (p *ApplyPatch) Resolve(base fs.FS) (patch.Patchset, error) {
	t := tree{base, map[string]*patch.File{}, new(work)}
	for i := range p.files {
		if err := t.do(&p.files[i]); err != nil {
			return patch.Patchset{}, err
		}
	}
	return patch.NewTree(base).Between(t.after)
}

// A tree is a base with what changed in it so far; nil is a file that is gone.
type tree struct {
	base  fs.FS
	after map[string]*patch.File
	work  *work
}

func (t tree) file(name string) (*patch.File, error) {
	if err := patch.CheckPath(name); err != nil {
		return nil, err
	}
	if f, known := t.after[name]; known {
		return f, nil
	}
	return patch.Lookup(t.base, name)
}

// write keeps the mode of the file that is there.
func (t tree) write(name string, data []byte) error {
	there, err := t.file(name)
	if err != nil {
		return err
	}
	mode := patch.Regular
	if there != nil {
		mode = there.Mode
	}
	t.after[name] = &patch.File{Mode: mode, Data: data}
	return nil
}

func (t tree) do(f *patchFile) error {
	there, err := t.file(f.path)
	switch {
	case err != nil:
		return at(f.line, err)
	case f.does == adds:
		return at(f.line, t.write(f.path, []byte(f.content.String())))
	case there == nil:
		return &patch.Error{Line: f.line, Path: f.path, Message: "does not exist"}
	case f.does == deletes:
		t.after[f.path] = nil
		return nil
	case f.to == f.path:
		return &patch.Error{Line: f.line, Path: f.path, Message: "is moved onto itself"}
	case !utf8.Valid(there.Data):
		return &patch.Error{Line: f.line, Path: f.path, Message: "is not UTF-8, which the tool does not change"}
	}
	changed, err := f.change(there.Data, t.work)
	if err != nil {
		return err
	}
	if f.to != "" {
		t.after[f.path] = nil
	}
	return at(f.line, t.write(cmp.Or(f.to, f.path), changed))
}

// at gives an error that has no line one.
func at(number int, err error) error {
	if e, is := err.(*patch.Error); is && e.Line == 0 { //nolint:errorlint // those of package patch are not wrapped
		return &patch.Error{Line: number, Path: e.Path, Message: e.Message, Try: e.Try}
	}
	return err
}

// A place is where a chunk goes: its lines take the place of those of the file from at on
// that they name. The chunks that follow are looked for from next on.
type place struct {
	at, next int
	lines    []line
}

// change returns a file's bytes after an update. Lines that stay end as they did, new ones
// as the file's first; one that had no end gets one.
func (f *patchFile) change(data []byte, w *work) ([]byte, error) {
	texts, ends := splitEnds(string(data))
	style := "\n"
	if len(ends) > 0 {
		style = cmp.Or(ends[0], style)
	}
	*w += work(len(texts) * perLine)
	s := &seeker{texts: texts, work: w}
	var edits []edit
	next := 0
	for _, c := range f.chunks {
		p, err := c.place(s, next)
		if err != nil {
			e := &patch.Error{Message: err.Error()}
			errors.As(err, &e)
			e.Line, e.Path = c.line, f.path
			return nil, e
		}
		edits, next = append(edits, p.edits()...), p.next
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var out strings.Builder
	written := 0
	keep := func(to int) {
		for ; written < to; written++ {
			out.WriteString(texts[written] + cmp.Or(ends[written], style))
		}
	}
	for _, e := range edits {
		keep(e.at)
		written += e.gone
		for _, text := range e.lines {
			out.WriteString(text + style)
		}
	}
	keep(len(texts))
	return []byte(out.String()), nil
}

// An edit puts lines in the place of some of the file's.
type edit struct {
	at, gone int
	lines    []string
}

// edits are what a chunk does between its lines of context.
func (p place) edits() (out []edit) {
	at, open := p.at, false
	for _, l := range p.lines {
		if l.op == ' ' {
			at, open = at+1, false
			continue
		}
		if !open {
			out, open = append(out, edit{at: at}), true
		}
		e := &out[len(out)-1]
		if l.op == '+' {
			e.lines = append(e.lines, l.text)
		} else {
			e.gone, at = e.gone+1, at+1
		}
	}
	return out
}

// splitEnds returns the lines of a file and their ends: \n, \r\n or \r, "" for a last line
// that has none.
func splitEnds(data string) (texts, ends []string) {
	for data != "" {
		i := strings.IndexAny(data, "\r\n")
		if i < 0 {
			return append(texts, data), append(ends, "")
		}
		end := data[i : i+1]
		if strings.HasPrefix(data[i:], "\r\n") {
			end = "\r\n"
		}
		texts, ends, data = append(texts, data[:i]), append(ends, end), data[i+len(end):]
	}
	return texts, ends
}

// place finds where a chunk goes, from a line of the file on.
func (c *chunk) place(s *seeker, next int) (place, error) {
	wanted := old(c.lines)
	starts, most := []int{next}, len(s.texts)
	if c.after != nil {
		if len(wanted) == 0 {
			most = 1 // the first says enough
		}
		starts = s.find([]string{*c.after}, next, false, most)
		for i := range starts {
			starts[i]++
		}
		most = 1 // the first one after that line
	}
	var found []place
	for _, start := range starts {
		if len(wanted) > 0 {
			found = append(found, c.from(s, start, most)...)
		}
	}
	switch {
	case s.work.tired():
		return place{}, fmt.Errorf("too many lines are alike to look for these, or the files are too long")
	case len(starts) == 0:
		return place{}, fmt.Errorf("there is no line %+q to come after", clip(*c.after))
	case len(wanted) == 0:
		return place{at: len(s.texts), next: starts[0], lines: c.lines}, nil
	}
	slices.SortFunc(found, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	found = slices.CompactFunc(found, func(a, b place) bool { return a.at == b.at })
	switch {
	case len(found) == 0 && slices.Equal(wanted, []string{""}):
		return place{}, fmt.Errorf("an empty line does not say where: give more lines around it")
	case len(found) == 0:
		return place{}, &patch.Error{Message: fmt.Sprintf("the lines to change are not there: the first is %+q", clip(wanted[0])), Try: patch.ReadHead}
	case len(found) > 1:
		return place{}, &patch.Error{Message: fmt.Sprintf("the lines to change are at %s: give more lines around them, or an @@ line", numbers(found)), Try: patch.SayPlace}
	}
	return found[0], nil
}

// from returns the places of a chunk from a line on. An empty line behind the others need
// not be there, for texts end with one that files have not.
func (c *chunk) from(s *seeker, start, most int) (out []place) {
	lines := c.lines
	at := s.find(old(lines), start, c.end, most)
	if texts := old(lines); len(at) == 0 && len(texts) > 1 && texts[len(texts)-1] == "" {
		lines = withoutLast(lines)
		at = s.find(old(lines), start, c.end, most)
	}
	for _, i := range at {
		out = append(out, place{at: i, next: i + len(old(lines)), lines: lines})
	}
	return out
}

// withoutLast leaves out the last line of the old text, and of the new one if it is empty.
func withoutLast(lines []line) []line {
	lines = slices.Clone(lines)
	i := len(lines) - 1
	for lines[i].op == '+' {
		i--
	}
	if lines[i].op == '-' {
		lines = slices.Delete(lines, i, i+1)
	} else {
		lines[i].op = '+'
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].op != '-' {
			if lines[i] == (line{op: '+'}) {
				lines = slices.Delete(lines, i, i+1)
			}
			break
		}
	}
	return lines
}

// old are the lines that a chunk looks for.
func old(lines []line) (out []string) {
	for _, l := range lines {
		if l.op != '+' {
			out = append(out, l.text)
		}
	}
	return out
}

// numbers are those of at most ten places' first lines, in words.
func numbers(found []place) string {
	var out []string
	for _, p := range found[:min(10, len(found))] {
		out = append(out, fmt.Sprint(p.at+1))
	}
	text := fmt.Sprintf("%d places, lines %s", len(found), strings.Join(out, ", "))
	if len(found) > 10 {
		text += " and others"
	}
	return text
}

// A seeker finds lines in a file. keys number the file's lines, those that are alike by the
// same number, for each way of being alike that was needed.
type seeker struct {
	texts []string
	keys  [len(alike)][]int
	ids   [len(alike)]map[string]int
	work  *work
}

// work is how much was done for one patch.
type work int

// maxWork bounds what is done for one patch, in lines that are compared: some seconds. To
// number a line takes perLine as long.
const (
	maxWork = 1 << 28
	perLine = 32
)

func (w *work) tired() bool { return *w > maxWork }

// alike are the ways in which lines are compared, the strictest first.
var alike = [...]func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimRightFunc(s, isSpace) },
	strings.TrimSpace,
	plain,
}

// number numbers the file's lines for a way of being alike, once.
func (s *seeker) number(way int) {
	if s.ids[way] != nil {
		return
	}
	s.ids[way], s.keys[way] = map[string]int{}, make([]int, len(s.texts))
	*s.work += work(len(s.texts) * perLine)
	for i, text := range s.texts {
		key := alike[way](text)
		id, known := s.ids[way][key]
		if !known {
			id = len(s.ids[way])
			s.ids[way][key] = id
		}
		s.keys[way][i] = id
	}
}

// find returns the first places of some lines from start on, or at the end alone, compared
// in the strictest way that has one.
func (s *seeker) find(lines []string, start int, atEnd bool, most int) (out []int) {
	last := len(s.texts) - len(lines)
	if atEnd {
		start = max(start, last)
	}
	for way, of := range alike {
		if start > last || s.work.tired() {
			return nil
		}
		s.number(way)
		var want []int
		for _, text := range lines {
			id, known := s.ids[way][of(text)]
			if !known {
				break
			}
			want = append(want, id)
		}
		if *s.work += work(len(want) + 1); len(want) < len(lines) {
			continue
		}
		for i := start; i <= last && len(out) < most && !s.work.tired(); i++ {
			n := 0
			for n < len(want) && s.keys[way][i+n] == want[n] {
				n++
			}
			if *s.work += work(n + 1); n == len(want) {
				out = append(out, i)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

func isSpace(r rune) bool { return unicode.IsSpace(r) }

// plain is a line without white space around it, in which typographic dashes, quotes and
// spaces are the plain ones.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '\u2010' && r <= '\u2015', r == '\u2212':
			return '-'
		case r >= '\u2018' && r <= '\u201b':
			return '\''
		case r >= '\u201c' && r <= '\u201f':
			return '"'
		case r == '\u00a0', r >= '\u2002' && r <= '\u200a', r == '\u202f', r == '\u205f', r == '\u3000':
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
}
