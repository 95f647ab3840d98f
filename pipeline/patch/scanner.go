package patch

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// scanner walks a diff line by line without copying it.
type scanner struct {
	rest []byte
	line int  // number of the line that next returned
	cut  bool // that line had no LF
	mail bool
	tail int // bytes of white space that the input ends with
}

func newScanner(raw []byte) *scanner {
	return &scanner{rest: raw, tail: len(raw) - len(bytes.TrimRight(raw, " \t\r\n"))}
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

func (s *scanner) fail(format string, args ...any) error {
	return &Error{Line: s.line, Message: fmt.Sprintf(format, args...)}
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
		return s.fail(`diff has no "diff --git" lines`)
	case has("diff --cc ") || has("diff --combined "):
		return s.fail("a merge's combined diff cannot be applied")
	}
	return s.fail("not a Git diff: unexpected text %s", Quote(clip(line)))
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
		return false, s.fail("not a Git diff: unexpected text between two files")
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
