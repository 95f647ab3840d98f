package patch

import (
	"bytes"
)

// A Diff is a Git diff that was read strictly and is not yet on a base. It
// refers to the bytes that Parse was given; they must not be modified.
type Diff struct {
	sections []section
	size     int // of the input in bytes
}

// Parse reads a Git diff (git diff, git show --format=, one format-patch mail).
// It refuses with an *Error what a lenient reader would skip: text that belongs
// to no file, headers that disagree with each other or with the content, a path
// named twice, hunks whose counts are wrong, a diff that is cut off, modes other
// than a regular file's, unsafe paths (CheckPath), and a diff without files.
func Parse(raw []byte) (Diff, error) {
	s := newScanner(raw)
	if err := s.preamble(); err != nil {
		return Diff{}, err
	}
	d := Diff{size: len(raw)}
	for {
		done, err := s.end()
		if err != nil {
			return Diff{}, err
		}
		if done {
			break
		}
		sec, err := s.section()
		if err != nil {
			return Diff{}, err
		}
		d.sections = append(d.sections, sec)
	}
	if len(d.sections) == 0 {
		return Diff{}, &Error{Message: "the patch is empty"}
	}
	made, taken := map[string]bool{}, map[string]bool{}
	for _, s := range d.sections {
		if made[s.new] || s.removes() && taken[s.old] {
			return d, &Error{Line: s.line, Path: s.new, Message: "path appears twice in the patch"}
		}
		made[s.new] = true
		if s.removes() {
			taken[s.old] = true
		}
	}
	return d, nil
}

// section reads one file: its header, then hunks, a binary patch, or nothing.
func (s *scanner) section() (section, error) {
	if !s.at(sectionMark) {
		return section{}, s.notADiff(s.next())
	}
	start := s.rest
	h := header{line: s.line + 1}
	if err := s.header(&h); err != nil {
		return section{}, at(err, h.line, h.likelyName())
	}
	head := start[:len(start)-len(s.rest)]
	sec, err := h.section()
	if err != nil {
		return section{}, err
	}
	if err = s.content(&sec, head, start); err == nil {
		err = sec.checkContent(h)
	}
	if err == nil && s.cut {
		err = s.fail("the patch ends in the middle of a line")
	}
	return sec, at(err, sec.line, sec.new)
}

// content reads what follows the header; head is the header, start the section
// from its first line on.
func (s *scanner) content(sec *section, head, start []byte) (err error) {
	switch {
	case s.at("@@ "):
		sec.hunks, err = s.hunks()
	case s.at(binaryMark):
		if err = s.binary(); err == nil {
			return sec.readBinary(start[:len(start)-len(s.rest)])
		}
	case s.at("Binary files ") || s.at("Files "):
		s.next()
		err = s.fail("binary file without its content")
	}
	if err != nil {
		return err
	}
	_, err = sec.secondOpinion(head)
	return err
}

// A Part is what a Diff says of one file by itself, without its base. Before and
// After are modes, 0 where there is no file or the Diff does not say. Lost is how
// many lines it takes away.
type Part struct {
	Kind          Kind
	Path, From    string
	Before, After Mode
	Binary        bool
	Added         []Line
	Lost          int
}

// A Line is one of a file after a change, without its LF, counted from 1.
type Line struct {
	Number int
	Text   []byte
}

// Parts are the files of a Diff in its order. A copy is a file that is added.
func (d Diff) Parts() []Part {
	var out []Part
	for _, s := range d.sections {
		p := Part{Kind: Update, Path: s.new, Before: s.oldMode, After: s.newMode, Binary: s.binary != nil}
		switch s.does {
		case makes, copies:
			p.Kind, p.Before = Add, 0
		case deletes:
			p.Kind, p.Path, p.After = Delete, s.old, 0
		case renames:
			p.Kind, p.From = Rename, s.old
		}
		shift := 0
		for _, h := range s.hunks {
			number := h.at + shift + 1
			for line := range bytes.Lines(h.body) {
				switch line[0] {
				case '+':
					p.Added = append(p.Added, Line{number, bytes.TrimSuffix(line[1:], []byte("\n"))})
					number++
				case '-':
					p.Lost++
				case '\\':
				default:
					number++
				}
			}
			shift += h.newLines - h.oldLines
		}
		out = append(out, p)
	}
	return out
}
