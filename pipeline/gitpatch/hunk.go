package gitpatch

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// hunk is one "@@" part of a section. Its body stays as it was sent: lines of
// '-', '+' or ' ' and text.
type hunk struct {
	line               int // of its header in the diff
	at                 int // old lines before it
	oldLines, newLines int
	removed, added     int // bytes
	body               []byte
}

// noNewline is the line after one that has no LF.
const noNewline = `\ No newline at end of file`

// maxHunkHeader bounds what is read of a hunk's header, whose heading can be
// of any length; what matters of it is shorter.
const maxHunkHeader = 200

// hunks reads the hunks of one section. They must be in order, and the new
// line numbers must follow from the old ones.
func (s *scanner) hunks() ([]hunk, error) {
	var out []hunk
	end, shift := 0, 0 // of the last hunk: where it ends; how far lines moved so far
	for ended := false; s.at("@@ "); {
		title := s.next()
		if ended {
			return nil, s.fail("hunk after the end of the file")
		}
		h, newAt, err := parseHunkHeader(string(title[:min(len(title), maxHunkHeader)]))
		switch {
		case err != nil:
			return nil, s.fail("%v", err)
		case h.at < end:
			return nil, s.fail("hunk overlaps the one before, or is out of order")
		case newAt != h.at+shift:
			return nil, s.fail("hunk's line numbers disagree")
		}
		h.line = s.line
		if ended, err = s.hunkBody(&h); err != nil {
			return nil, err
		}
		end, shift = h.at+h.oldLines, shift+h.newLines-h.oldLines
		out = append(out, h)
	}
	return out, nil
}

var errHunkHeader = errors.New("malformed hunk header")

// parseHunkHeader reads "@@ -a,b +c,d @@ …"; a count left out is 1. It returns
// the hunk with its place in the old lines, and its place in the new ones.
func parseHunkHeader(title string) (h hunk, newAt int, err error) {
	body, heading, ok := strings.Cut(strings.TrimPrefix(title, "@@ "), " @@")
	minus, plus, two := strings.Cut(body, " ")
	old, hasMinus := strings.CutPrefix(minus, "-")
	new, hasPlus := strings.CutPrefix(plus, "+")
	if !ok || !two || !hasMinus || !hasPlus || heading != "" && heading[0] != ' ' {
		return hunk{}, 0, errHunkHeader
	}
	if h.at, h.oldLines, err = parseRange(old); err != nil {
		return hunk{}, 0, err
	}
	newAt, h.newLines, err = parseRange(new)
	return h, newAt, err
}

// parseRange returns how many lines come before the range, and its length. A
// range of no lines names the line that it comes after (git-diff(1)).
func parseRange(r string) (at, count int, err error) {
	start, length, ok := strings.Cut(r, ",")
	if !ok {
		length = "1"
	}
	if at, err = parseNumber(start); err != nil {
		return 0, 0, err
	}
	if count, err = parseNumber(length); err != nil || count == 0 {
		return at, 0, err
	}
	if at == 0 {
		return 0, 0, errHunkHeader
	}
	return at - 1, count, nil
}

func parseNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, errHunkHeader
	}
	return int(n), nil
}

// hunkBody reads as many lines as the header counts. ended says that a side
// ends in a line without LF, after which nothing can follow.
func (s *scanner) hunkBody(h *hunk) (ended bool, err error) {
	b := body{old: h.oldLines, new: h.newLines}
	start := s.rest
	for b.old > 0 || b.new > 0 || s.at(`\`) {
		if len(s.rest) == 0 {
			return false, s.miscounted(h, start)
		}
		switch err := b.line(s.next()); {
		case errors.Is(err, errCount):
			return false, s.miscounted(h, start)
		case err != nil:
			return false, s.fail("%v", err)
		}
		if b.last == '\\' {
			s.cut = false // the marker ends the patch well without LF
		}
	}
	h.body = start[:len(start)-len(s.rest)]
	h.removed, h.added = b.removed, b.added
	switch {
	case len(s.rest) > 0 && strings.IndexByte(" +-", s.rest[0]) >= 0 && !s.atSignature():
		return false, s.miscounted(h, start)
	case !b.changes:
		return false, &patch.Error{Line: h.line, Message: "hunk without a change"}
	}
	return b.oldEnded || b.newEnded, nil
}

var errCount = errors.New("hunk has other lines than its counts say")

// miscounted says what a hunk's counts are, and what those of its lines are, from start on.
func (s *scanner) miscounted(h *hunk, start []byte) error {
	c := scanner{rest: start, line: h.line, mail: s.mail}
	old, new := 0, 0
	for len(c.rest) > 0 && strings.IndexByte(" +-\\\n", c.rest[0]) >= 0 && !c.atSignature() {
		mark := c.rest[0]
		if c.next(); mark != '+' && mark != '\\' {
			old++
		}
		if mark != '-' && mark != '\\' {
			new++
		}
	}
	return &patch.Error{Line: h.line, Message: fmt.Sprintf("hunk says %d old and %d new lines, but has %d and %d", h.oldLines, h.newLines, old, new), Try: "mend the counts in its @@ line, or make the diff anew"}
}

// body is the state while a hunk's lines are read.
type body struct {
	old, new           int // lines that are missing
	removed, added     int // bytes
	last               byte
	bare               bool // the last line had no text
	oldEnded, newEnded bool
	changes            bool
}

func (b *body) line(line []byte) error {
	mark := byte(' ') // GNU diff and some mailers leave an empty context line bare
	if len(line) > 0 {
		mark = line[0]
	}
	size := max(len(line), 1)
	switch mark {
	case ' ':
		b.old, b.new = b.old-1, b.new-1
	case '-':
		b.old, b.removed, b.changes = b.old-1, b.removed+size, true
	case '+':
		b.new, b.added, b.changes = b.new-1, b.added+size, true
	case '\\':
		return b.ends(line)
	default:
		return errCount
	}
	b.last, b.bare = mark, len(line) <= 1
	switch {
	case b.old < 0 || b.new < 0:
		return errCount
	case mark != '+' && b.oldEnded || mark != '-' && b.newEnded:
		return errors.New("a line without its newline is not the last one")
	}
	return nil
}

// ends takes the marker line: the line before it has no LF.
func (b *body) ends(line []byte) error {
	switch {
	case !bytes.Equal(line, []byte(noNewline)):
		return errors.New("malformed line in a hunk")
	case b.last == 0 || b.last == '\\' || b.bare:
		return errors.New("no line for the missing newline")
	case b.last != '+' && b.old > 0 || b.last != '-' && b.new > 0:
		return errors.New("a line without its newline is not the last one")
	}
	b.oldEnded = b.oldEnded || b.last != '+'
	b.newEnded = b.newEnded || b.last != '-'
	b.last = '\\'
	return nil
}

// applyHunks puts hunks exactly where they say, without fuzz or offset search.
// That is done here: go-gitdiff's applier inserts a hunk without context ("@@
// -24,0 +25 @@", git diff -U0) one line too early, and copies each line.
func applyHunks(before []byte, hunks []hunk) ([]byte, error) {
	if len(hunks) == 0 {
		return before, nil
	}
	size := len(before)
	for _, h := range hunks {
		size += h.added - h.removed
	}
	t := text{rest: before, out: make([]byte, 0, max(size, 0))}
	for _, h := range hunks {
		if err := t.hunk(h); err != nil {
			return nil, h.misfit(before, err)
		}
	}
	return t.out, t.emit(t.rest)
}

// text is a file on the way from its old lines to its new bytes.
type text struct {
	rest []byte // old lines that are not dealt with yet
	line int    // number of those that are
	out  []byte
}

func (t *text) hunk(h hunk) error {
	if err := t.skip(h); err != nil {
		return err
	}
	for mark, content := range h.lines {
		if err := t.apply(mark, content); err != nil {
			return err
		}
	}
	return nil
}

// lines calls yield with each line of a hunk: its mark, and the text with its LF, if it has one.
func (h hunk) lines(yield func(mark byte, content []byte) bool) {
	for rest := h.body; len(rest) > 0; {
		var line []byte
		line, rest = cutLine(rest)
		mark, content := line[0], line[1:]
		if mark == '\n' {
			mark, content = ' ', line
		}
		if len(rest) > 0 && rest[0] == '\\' {
			content = content[:len(content)-1]
			_, rest = cutLine(rest)
		}
		if !yield(mark, content) {
			return
		}
	}
}

// without is what a hunk's file has there before ('+') or after it ('-'): all lines but those with a mark.
func (h hunk) without(not byte) (out []byte) {
	for mark, content := range h.lines {
		if mark != not {
			out = append(out, content...)
		}
	}
	return out
}

// cutLine returns the first line with its LF, and what follows.
func cutLine(b []byte) (line, rest []byte) {
	end := bytes.IndexByte(b, '\n') + 1
	if end == 0 {
		end = len(b)
	}
	return b[:end], b[end:]
}

// skip copies the lines before the hunk.
func (t *text) skip(h hunk) error {
	end := 0
	for ; t.line < h.at; t.line++ {
		line, _ := cutLine(t.rest[end:])
		if len(line) == 0 {
			return &Mismatch{Line: t.line + 1, past: h.at + 1}
		}
		end += len(line)
	}
	err := t.emit(t.rest[:end])
	t.rest = t.rest[end:]
	return err
}

func (t *text) apply(mark byte, content []byte) error {
	if mark != '+' {
		rest, ok := bytes.CutPrefix(t.rest, content)
		if !ok || len(content) == 0 || content[len(content)-1] != '\n' && len(rest) > 0 {
			line, _ := cutLine(t.rest)
			return &Mismatch{Line: t.line + 1, Wants: content, Has: line}
		}
		t.rest = rest
		t.line++
	}
	if mark != '-' {
		return t.emit(content)
	}
	return nil
}

// emit appends whole lines to the new content.
func (t *text) emit(lines []byte) error {
	if n := len(t.out); n > 0 && t.out[n-1] != '\n' && len(lines) > 0 {
		return errors.New("a line without its newline is not the last one")
	}
	t.out = append(t.out, lines...)
	return nil
}
