package patch

import (
	"bytes"
	"fmt"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/countersign-dev/countersign/pipeline/patch/linediff"
)

// apply returns the file's content after the section's hunks or binary patch.
//
// Hunks are put in place here: go-gitdiff's applier inserts a hunk without
// context ("@@ -24,0 +25 @@", git diff -U0) one line too early.
func (s section) apply(before []byte) ([]byte, error) {
	if !s.file.IsBinary {
		return applyHunks(before, s.file.TextFragments)
	}
	var out bytes.Buffer
	if err := gitdiff.Apply(&out, bytes.NewReader(before), s.file); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func applyHunks(before []byte, hunks []*gitdiff.TextFragment) ([]byte, error) {
	t := text{lines: linediff.Lines(before)}
	if len(hunks) == 0 {
		return before, nil
	}
	t.out = make([]byte, 0, len(before)+len(before)/8)
	for _, h := range hunks {
		if err := t.hunk(h); err != nil {
			return nil, err
		}
	}
	return t.out, t.copy(len(t.lines))
}

// text is a file on the way from its old lines to its new bytes.
type text struct {
	lines [][]byte
	next  int // the first old line that is not dealt with yet
	out   []byte
}

// hunk applies one hunk exactly where it says. A hunk that replaces no old line
// names the line it comes after (git-diff(1), unified format).
func (t *text) hunk(h *gitdiff.TextFragment) error {
	start := int(h.OldPosition)
	if h.OldLines > 0 {
		start--
	}
	if start < t.next {
		return fmt.Errorf("hunk at line %d overlaps the one before", h.OldPosition)
	}
	if start > len(t.lines) {
		return fmt.Errorf("hunk at line %d is past the end of the file", h.OldPosition)
	}
	if err := t.copy(start); err != nil {
		return err
	}
	for _, line := range h.Lines {
		if err := t.line(line); err != nil {
			return err
		}
	}
	return nil
}

func (t *text) copy(end int) error {
	for ; t.next < end; t.next++ {
		if err := t.emit(t.lines[t.next]); err != nil {
			return err
		}
	}
	return nil
}

func (t *text) line(line gitdiff.Line) error {
	if line.Old() {
		if t.next >= len(t.lines) || string(t.lines[t.next]) != line.Line {
			return fmt.Errorf("line %d is not what the patch expects", t.next+1)
		}
		t.next++
	}
	if line.New() {
		return t.emit([]byte(line.Line))
	}
	return nil
}

func (t *text) emit(line []byte) error {
	if n := len(t.out); n > 0 && t.out[n-1] != '\n' {
		return fmt.Errorf("a line without its newline is not the last one")
	}
	t.out = append(t.out, line...)
	return nil
}
