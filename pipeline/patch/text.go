package patch

import (
	"bytes"
	"errors"
	"fmt"
)

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
			return nil, err
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
		if err := t.apply(mark, content); err != nil {
			return err
		}
	}
	return nil
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
			return fmt.Errorf("hunk at line %d is past the end of the file", h.at+1)
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
			return t.unexpected(content)
		}
		t.rest = rest
		t.line++
	}
	if mark != '-' {
		return t.emit(content)
	}
	return nil
}

func (t *text) unexpected(content []byte) error {
	line, _ := cutLine(t.rest)
	why := ""
	if len(line) > 0 && bytes.Equal(bytes.TrimRight(line, "\r\n"), bytes.TrimRight(content, "\r\n")) {
		why = " (only its line end differs)"
	}
	return fmt.Errorf("line %d is not what the patch expects%s", t.line+1, why)
}

// emit appends whole lines to the new content.
func (t *text) emit(lines []byte) error {
	if n := len(t.out); n > 0 && t.out[n-1] != '\n' && len(lines) > 0 {
		return errors.New("a line without its newline is not the last one")
	}
	t.out = append(t.out, lines...)
	return nil
}
