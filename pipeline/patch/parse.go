package patch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// A Diff is a Git diff that was read strictly and is not yet on a base.
type Diff struct{ sections []section }

// section is one file's part of a diff.
type section struct {
	line     int // of the "diff --git" line, from 1
	old, new string
	oldMode  Mode // 0 where the diff does not say
	newMode  Mode
	file     *gitdiff.File
}

// Parse reads a Git diff (git diff, git show --format=, one format-patch mail).
// It refuses with an *Error what a lenient reader would skip: text that belongs
// to no file, headers that disagree on a name, a path named twice, hunks whose
// counts are wrong, modes other than a regular file's, and a diff without files.
func Parse(raw []byte) (Diff, error) {
	s := &scanner{rest: raw}
	if err := s.preamble(); err != nil {
		return Diff{}, err
	}
	var d Diff
	for !s.end() {
		sec, err := s.section()
		if err != nil {
			return Diff{}, err
		}
		d.sections = append(d.sections, sec)
	}
	if len(d.sections) == 0 {
		return Diff{}, &Error{Message: "the patch is empty"}
	}
	return d, d.checkNames()
}

// checkNames refuses unsafe paths and a path that two sections claim.
func (d Diff) checkNames() error {
	made, taken := map[string]bool{}, map[string]bool{}
	for _, s := range d.sections {
		for _, name := range []string{s.old, s.new} {
			if err := CheckPath(name); err != nil {
				err.(*Error).Line = s.line
				return err
			}
		}
		removes := s.file.IsRename || !s.file.IsNew && !s.file.IsCopy
		if made[s.new] || removes && taken[s.old] {
			return &Error{Line: s.line, Path: s.new, Message: "path appears twice in the patch"}
		}
		made[s.new] = true
		if removes {
			taken[s.old] = true
		}
	}
	return nil
}

// scanner walks a diff line by line. It knows only as much of the format as is
// needed to see that every line belongs somewhere; go-gitdiff reads the rest.
type scanner struct {
	rest []byte
	line int // number of the line that next returns
	mail bool
}

const sectionMark = "diff --git "

// next returns the next line without its LF.
func (s *scanner) next() string {
	s.line++
	line, rest, _ := bytes.Cut(s.rest, []byte("\n"))
	s.rest = rest
	return string(line)
}

func (s *scanner) peek() string {
	line, _, _ := bytes.Cut(s.rest, []byte("\n"))
	return string(line)
}

func (s *scanner) at(prefix string) bool { return bytes.HasPrefix(s.rest, []byte(prefix)) }

func (s *scanner) fail(format string, args ...any) error {
	return &Error{Line: s.line, Message: fmt.Sprintf(format, args...)}
}

// preamble skips blank lines, or the head of one format-patch mail.
func (s *scanner) preamble() error {
	s.mail = s.at("From ") && mailStart(s.peek())
	for len(s.rest) > 0 && !s.at(sectionMark) {
		if line := s.next(); !s.mail && strings.TrimSpace(line) != "" {
			return s.notADiff(line)
		}
	}
	return nil
}

// mailStart: "From " and a commit id, the first line git format-patch writes.
func mailStart(line string) bool {
	f := strings.Fields(line)
	return len(f) > 2 && (len(f[1]) == 40 || len(f[1]) == 64) && isHex(f[1])
}

func (s *scanner) notADiff(line string) error {
	if strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "Index: ") {
		return s.fail(`diff has no "diff --git" lines`)
	}
	if strings.HasPrefix(line, "diff --cc") || strings.HasPrefix(line, "diff --combined") {
		return s.fail("a merge's combined diff cannot be applied")
	}
	return s.fail("not a Git diff: unexpected text %s", Quote(clip(line)))
}

// end consumes what may follow the last file: blank lines, and in a mail the
// "-- " signature with its version line.
func (s *scanner) end() bool {
	rest := bytes.TrimRight(s.rest, " \t\r\n")
	if len(rest) == 0 {
		return true
	}
	if !s.mail || !s.at("-- \n") {
		return false
	}
	return bytes.Count(rest, []byte("\n")) <= 1
}

// section reads one file: its header, then hunks, a binary patch, or nothing.
func (s *scanner) section() (section, error) {
	if !s.at(sectionMark) {
		return section{}, s.notADiff(s.next())
	}
	start, first := s.rest, s.line+1
	h := header{line: first, title: strings.TrimPrefix(s.next(), sectionMark)}
	if err := s.header(&h); err != nil {
		return section{}, err
	}
	var err error
	switch {
	case s.at("@@ "):
		err = s.hunks()
	case s.at("GIT binary patch\n"):
		err = s.binary()
	case s.at("Binary files "):
		s.next()
		err = s.fail("binary file without its content")
	}
	if err != nil {
		return section{}, err
	}
	return h.section(start[:len(start)-len(s.rest)])
}

func (s *scanner) hunks() error {
	for s.at("@@ ") {
		title := s.next()
		old, new, err := hunkCounts(title)
		if err != nil {
			return s.fail("%v", err)
		}
		if err := s.hunkLines(old, new); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) hunkLines(old, new int) error {
	for old > 0 || new > 0 {
		if len(s.rest) == 0 {
			return s.fail("hunk ends before its line counts are reached")
		}
		mark := s.rest[0]
		s.next()
		switch mark {
		case ' ', '\n':
			old, new = old-1, new-1
		case '-':
			old--
		case '+':
			new--
		case '\\':
			continue
		default:
			return s.fail("hunk ends before its line counts are reached")
		}
		if old < 0 || new < 0 {
			return s.fail("hunk has more lines than its counts say")
		}
	}
	if s.at(`\ `) {
		s.next()
	}
	if len(s.rest) > 0 && strings.ContainsRune(" +-", rune(s.rest[0])) && !s.at("-- \n") {
		s.line++
		return s.fail("hunk has more lines than its counts say")
	}
	return nil
}

// hunkCounts reads "@@ -a,b +c,d @@ …"; a count left out is 1.
func hunkCounts(title string) (old, new int, err error) {
	body, _, ok := strings.Cut(strings.TrimPrefix(title, "@@ "), " @@")
	minus, plus, two := strings.Cut(body, " ")
	if !ok || !two || !strings.HasPrefix(minus, "-") || !strings.HasPrefix(plus, "+") {
		return 0, 0, fmt.Errorf("malformed hunk header")
	}
	if old, err = rangeCount(minus[1:]); err != nil {
		return 0, 0, err
	}
	new, err = rangeCount(plus[1:])
	return old, new, err
}

func rangeCount(r string) (int, error) {
	start, count, ok := strings.Cut(r, ",")
	if !ok {
		count = "1"
	}
	a, errA := strconv.ParseUint(start, 10, 31)
	n, errN := strconv.ParseUint(count, 10, 31)
	if errA != nil || errN != nil || a+n > 1<<31-1 {
		return 0, fmt.Errorf("malformed hunk header")
	}
	return int(n), nil
}

// binary consumes the forward literal or delta and the reverse one if there is
// one; go-gitdiff checks what they hold.
func (s *scanner) binary() error {
	s.next()
	if !s.at("literal ") && !s.at("delta ") {
		s.next()
		return s.fail("binary patch without data")
	}
	for s.at("literal ") || s.at("delta ") {
		s.next()
		for len(s.rest) > 0 && !s.at("\n") {
			s.next()
		}
		if len(s.rest) == 0 {
			return s.fail("binary patch is cut off")
		}
		s.next()
	}
	return nil
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

// clip shortens a foreign line for an error message.
func clip(line string) string {
	if len(line) > 60 {
		return line[:60] + "…"
	}
	return line
}
