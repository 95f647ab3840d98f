package patch

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/patch/linediff"
)

// contextLines is the number of unchanged lines around each hunk.
const contextLines = 3

func (c Change) writeText(b *bytes.Buffer, before, after []byte) {
	oldName, newName := "/dev/null", "/dev/null"
	if c.Before != nil {
		oldName = headerName("a/" + c.Path)
	}
	if c.After != nil {
		newName = headerName("b/" + c.Path)
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", oldName, newName)
	room := lineRooms.Get().(*lineRoom)
	defer room.done()
	room.old = linediff.AppendLines(room.old[:0], before)
	room.new = linediff.AppendLines(room.new[:0], after)
	old, new := room.old, room.new
	hunks := linediff.Hunks(linediff.Diff(old, new), len(old), len(new), contextLines)
	size := 0
	for _, h := range hunks {
		size += hunkSize(h, old, new)
	}
	b.Grow(size)
	for _, h := range hunks {
		writeHunk(b, h, old, new)
	}
}

// lineRoom is memory for the lines of a file before and after, used again: with
// many files, most of the memory would be theirs.
type lineRoom struct{ old, new [][]byte }

var lineRooms = sync.Pool{New: func() any { return new(lineRoom) }}

func (r *lineRoom) done() {
	clear(r.old)
	clear(r.new)
	lineRooms.Put(r)
}

// hunkSize is a little more than the bytes of a hunk, so that those of a large
// file are written without growing, which would take their memory three times.
func hunkSize(h linediff.Hunk, old, new [][]byte) int {
	size := 128
	for _, line := range old[h.OldStart : h.OldStart+h.OldLines] {
		size += 1 + len(line)
	}
	for _, e := range h.Edits {
		for _, line := range new[e.NewStart:e.NewEnd] {
			size += 1 + len(line)
		}
	}
	return size
}

func writeHunk(b *bytes.Buffer, h linediff.Hunk, old, new [][]byte) {
	fmt.Fprintf(b, "@@ -%s +%s @@\n", hunkRange(h.OldStart, h.OldLines), hunkRange(h.NewStart, h.NewLines))
	at := h.OldStart
	for _, e := range h.Edits {
		writeLines(b, ' ', old[at:e.OldStart])
		writeLines(b, '-', old[e.OldStart:e.OldEnd])
		writeLines(b, '+', new[e.NewStart:e.NewEnd])
		at = e.OldEnd
	}
	writeLines(b, ' ', old[at:h.OldStart+h.OldLines])
}

// hunkRange writes a hunk's start and length as Git does: the length is left
// out when 1, and an empty range names the line before it.
func hunkRange(start, lines int) string {
	switch lines {
	case 0:
		return fmt.Sprintf("%d,0", start)
	case 1:
		return fmt.Sprint(start + 1)
	}
	return fmt.Sprintf("%d,%d", start+1, lines)
}

func writeLines(b *bytes.Buffer, mark byte, lines [][]byte) {
	for _, line := range lines {
		b.WriteByte(mark)
		b.Write(line)
		if line[len(line)-1] != '\n' {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
