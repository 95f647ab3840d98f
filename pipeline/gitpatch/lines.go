package gitpatch

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Line is one line of a diff.
type Line struct {
	File          int    // which of the diff's files it is about, from 0
	Mark          byte   // ' ', '-', '+' or '\\' in a hunk, '@' where one begins, 0 elsewhere
	Before, After int    // its number in the file before and after the change, from 1; 0 where it is not there
	Raw           []byte // the whole line with its LF
	Text          []byte // without its LF, and in a hunk without the mark
}

// Lines are the lines of a diff, for those who show it or look for something in it. It takes
// anything: what is above the first "diff --git" line is a file of its own, and a line of a hunk
// that has none of the marks is no line of the file.
func Lines(diff []byte) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		file, before, after, inHunk := -1, 0, 0, false
		for raw := range bytes.Lines(diff) {
			l := Line{Raw: raw, Text: bytes.TrimSuffix(raw, []byte("\n"))}
			switch {
			case file < 0 || bytes.HasPrefix(raw, []byte(sectionMark)):
				file, inHunk = file+1, false
			case bytes.HasPrefix(raw, []byte("@@ ")):
				l.Mark, inHunk = '@', true
				before, after = begins(l.Text)
			case inHunk && strings.IndexByte(" -+\\\n", raw[0]) >= 0:
				if l.Mark = raw[0]; l.Mark == '\n' { // GNU diff leaves an empty line bare
					l.Mark = ' '
				} else {
					l.Text = l.Text[1:]
				}
				if before > 0 && (l.Mark == ' ' || l.Mark == '-') {
					l.Before = before
					before++
				}
				if after > 0 && (l.Mark == ' ' || l.Mark == '+') {
					l.After = after
					after++
				}
			}
			if l.File = file; !yield(l) {
				return
			}
		}
	}
}

var hunkHeader = canon.Regexp(`^@@ -([0-9]{1,10})(,[0-9]+)? \+([0-9]{1,10})(,[0-9]+)? @@( |$)`)

// begins are the numbers of the first lines of a hunk before and after, 0 for both if its header is none.
func begins(header []byte) (before, after int) {
	m := hunkHeader().FindSubmatch(header[:min(len(header), maxHunkHeader)])
	if m == nil {
		return 0, 0
	}
	first := func(start, length []byte) int {
		n, _ := strconv.Atoi(string(start)) // ten digits are a number
		if string(length) == ",0" {
			n++ // a range of no lines names the one before it
		}
		return n
	}
	return first(m[1], m[2]), first(m[3], m[4])
}

// A Stat is what a diff does to one of its files, in numbers.
type Stat struct {
	Added, Deleted int    // lines
	Lines          int    // of the diff
	Diff           []byte // the part of the diff that is about the file

	// Only of a file that the diff has as binary: how many bytes it has afterwards, and the
	// first of them; -1 and none where the diff does not say.
	Binary bool
	Size   int
	Begins []byte
}

// Stats are the numbers of each file of a diff, in its order.
func Stats(diff []byte) []Stat {
	var out []Stat
	at := 0
	for l := range Lines(diff) {
		if l.File == len(out) {
			out = append(out, Stat{Diff: diff[at:at], Size: -1})
		}
		s := &out[l.File]
		at += len(l.Raw)
		s.Diff = s.Diff[:len(s.Diff)+len(l.Raw)]
		s.Lines++
		switch l.Mark {
		case '+':
			s.Added++
		case '-':
			s.Deleted++
		}
	}
	for i := range out {
		if s := &out[i]; s.Added+s.Deleted == 0 {
			s.readBinary()
		}
	}
	return out
}

func (s *Stat) readBinary() {
	var content []byte
	_, content, s.Binary = bytes.Cut(s.Diff, []byte("\n"+binaryMark))
	head, payload, _ := bytes.Cut(content, []byte("\n"))
	size, literal := strings.CutPrefix(string(head), "literal ")
	n, err := strconv.Atoi(size)
	if !literal || err != nil || n < 0 {
		return
	}
	first, _, _ := bytes.Cut(payload, []byte("\n"))
	s.Size, s.Begins = n, LiteralBegins(first, n)
}

// Moved says where a hunk was found, as "doc.go 4 lines lower".
func Moved(o patch.Offset) string {
	where, n, s := "lower", o.By, "s"
	if n < 0 {
		where, n = "higher", -n
	}
	if n == 1 {
		s = ""
	}
	return fmt.Sprintf("%s %d line%s %s", patch.Quote(o.Path), n, s, where)
}
