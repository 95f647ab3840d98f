package gitpatch

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// TryCommit helps where a path is there twice.
const TryCommit = "make them commits if one builds on the other, and propose those with --as one"

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
	s := &scanner{rest: raw, tail: len(raw) - len(bytes.TrimRight(raw, " \t\r\n"))}
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
		return Diff{}, &patch.Error{Message: "the patch is empty", Try: "git diff HEAD"}
	}
	made, taken := map[string]bool{}, map[string]bool{}
	for _, s := range d.sections {
		if made[s.new] || s.removes() && taken[s.old] {
			return d, &patch.Error{Line: s.line, Path: s.new, Message: "path appears twice in the patch", Try: TryCommit}
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
		return section{}, patch.At(err, h.line, h.likelyName())
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
		err = s.fail("the patch ends in the middle of a line").With("end the patch with a line break")
	}
	return sec, patch.At(err, sec.line, sec.new)
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
		err = s.fail("binary file without its content").With("git diff --binary")
	}
	if err != nil {
		return err
	}
	_, err = sec.secondOpinion(head)
	return err
}

// A Part is what a Diff says of one file by itself, without its base: the path of the file before, ""
// for one that it makes, and after; and the id before of the index line, "" for none.
type Part struct{ Path, From, OldID string }

// Parts are the files of a Diff in its order. A copy is a file that is added.
func (d Diff) Parts() []Part {
	var out []Part
	for _, s := range d.sections {
		p := Part{Path: s.new, OldID: s.oldID}
		if s.does == renames {
			p.From = s.old
		}
		out = append(out, p)
	}
	return out
}

// scanner walks a diff line by line without copying it.
type scanner struct {
	rest []byte
	line int  // number of the line that next returned
	cut  bool // that line had no LF
	mail bool
	tail int // bytes of white space that the input ends with
}

const (
	sectionMark = "diff --git "
	binaryMark  = "GIT binary patch\n"
)

// next returns the next line without its LF.
func (s *scanner) next() []byte {
	s.line++
	line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
	s.rest, s.cut = rest, !whole
	return line
}

func (s *scanner) at(prefix string) bool {
	return len(s.rest) >= len(prefix) && string(s.rest[:len(prefix)]) == prefix
}

func (s *scanner) fail(format string, args ...any) *patch.Error {
	return &patch.Error{Line: s.line, Message: fmt.Sprintf(format, args...)}
}

// preamble skips blank lines, or the head of one format-patch mail.
func (s *scanner) preamble() error {
	s.mail = s.atMail()
	for len(s.rest) > 0 && !s.at(sectionMark) {
		line := s.next()
		switch {
		case !s.mail && len(bytes.TrimSpace(line)) > 0:
			return s.notADiff(line)
		case s.mail && bytes.HasPrefix(line, []byte("+++ ")) && s.at("@@ -"):
			return s.fail("the mail's message holds a diff of its own")
		case s.mail && s.atMail():
			return s.secondMail()
		}
	}
	return nil
}

// atMail: "From " and a commit id, the first line git format-patch writes.
func (s *scanner) atMail() bool {
	if !s.at("From ") {
		return false
	}
	line, _, _ := bytes.Cut(s.rest[:min(len(s.rest), 100)], []byte("\n"))
	f := strings.Fields(string(line))
	return len(f) > 2 && (canon.IsHex(f[1], 40) || canon.IsHex(f[1], 64))
}

func (s *scanner) secondMail() error {
	s.next()
	return s.fail("more than one mail; give one patch at a time")
}

func (s *scanner) notADiff(line []byte) error {
	has := func(prefix string) bool { return bytes.HasPrefix(line, []byte(prefix)) }
	switch {
	case has("--- ") || has("Index: "):
		return s.fail(`diff has no "diff --git" lines`).With("git diff")
	case has("diff --cc ") || has("diff --combined "):
		return s.fail("a merge's combined diff cannot be applied").With("git diff HEAD^1 HEAD")
	}
	e := s.fail("not a Git diff: unexpected text %s", patch.Quote(clip(line)))
	switch {
	case has("\x1b"):
		return e.With("git diff --no-color")
	case has("~"):
		return e.With("git diff --word-diff=none")
	}
	return e.With("git diff HEAD")
}

// end consumes what may follow the last file: blank lines, and in a mail the
// base that format-patch --base records and the "-- " signature with its
// version line.
func (s *scanner) end() (bool, error) {
	switch {
	case len(s.rest) <= s.tail:
		return true, nil
	case !s.mail:
		return false, nil
	}
	last := s.line
	for s.at("\n") || s.at("base-commit: ") || s.at("prerequisite-patch-id: ") {
		s.next()
	}
	if s.at(signature) {
		s.next()
		s.next()
		for s.at("\n") {
			s.next()
		}
		if len(s.rest) > 0 && !s.atMail() {
			return false, s.notADiff(s.next())
		}
	}
	if s.atMail() {
		return false, s.secondMail()
	}
	done := len(s.rest) <= s.tail
	if !done && s.line != last {
		return false, s.fail("not a Git diff: unexpected text between two files").With("git diff HEAD")
	}
	return done, nil
}

// signature begins a mail's last lines.
const signature = "-- \n"

func (s *scanner) atSignature() bool { return s.mail && s.at(signature) }

// clip shortens a foreign line for an error message.
func clip[T string | []byte](line T) string {
	if len(line) > 60 {
		return string(line[:60]) + "…"
	}
	return string(line)
}
