package patch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/patch/linediff"
)

const absentID = "0000000000000000000000000000000000000000"

// Bytes returns the canonical bytes: a Git diff that `git apply` accepts, with
// full blob ids, three lines of context, the line diff of package linediff and
// uncompressed binary literals. docs/formats.md specifies every line. They are
// derived once and must not be modified.
func (p Patchset) Bytes() []byte {
	if p.memo == nil {
		return encode(p.Changes)
	}
	return p.memo.bytes()
}

func encode(changes []Change) []byte {
	pieces := make([][]byte, len(changes))
	parallel.Do(len(changes), func(i int) { pieces[i] = changes[i].Bytes() })
	if len(pieces) == 1 {
		return slices.Clip(pieces[0])
	}
	return bytes.Join(pieces, nil)
}

// Bytes returns the canonical bytes of this one change.
func (c Change) Bytes() []byte {
	var b bytes.Buffer
	c.write(&b, 100)
	return b.Bytes()
}

// write writes a change; alike is the similarity of a rename, in percent, which has other
// content only where it is shown to people (Renaming).
func (c Change) write(b *bytes.Buffer, alike int) {
	from := c.Path
	if c.Kind == Rename {
		from = c.From
	}
	fmt.Fprintf(b, "diff --git %s %s\n", quoteName("a/"+from), quoteName("b/"+c.Path))
	switch {
	case c.Before == nil:
		fmt.Fprintf(b, "new file mode %s\n", c.After.Mode)
	case c.After == nil:
		fmt.Fprintf(b, "deleted file mode %s\n", c.Before.Mode)
	case c.Before.Mode != c.After.Mode:
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", c.Before.Mode, c.After.Mode)
	}
	if c.Kind == Rename {
		fmt.Fprintf(b, "similarity index %d%%\nrename from %s\nrename to %s\n", alike, quoteName(from), quoteName(c.Path))
	}
	// The index line binds the content even where no hunk shows it (a rename, a
	// mode change, an empty file).
	oldID, newID, mode := absentID, absentID, ""
	if c.Before != nil {
		oldID = c.Before.BlobID()
	}
	if c.After != nil {
		newID = c.After.BlobID()
	}
	if c.Before != nil && c.After != nil && c.Before.Mode == c.After.Mode {
		mode = " " + c.After.Mode.String()
	}
	fmt.Fprintf(b, "index %s..%s%s\n", oldID, newID, mode)
	before, after := c.Before.data(), c.After.data()
	switch {
	case bytes.Equal(before, after):
	case isBinary(before) || isBinary(after):
		writeBinary(b, after)
	default:
		c.writeText(b, before, after)
	}
}

func (f *File) data() []byte {
	if f == nil {
		return nil
	}
	return f.Data
}

// isBinary: a file with a NUL byte anywhere is not shown as text.
func isBinary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 }

// quoteName writes a name as Git does in headers. Only a double quote needs
// it: CheckPath refuses control characters and backslashes.
func quoteName(name string) string {
	if !strings.Contains(name, `"`) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `\"`) + `"`
}

// headerName is quoteName with the tab that ends an unquoted name with spaces
// in a --- or +++ line.
func headerName(name string) string {
	if q := quoteName(name); q != name || !strings.Contains(name, " ") {
		return q
	}
	return name + "\t"
}

// contextLines is the number of unchanged lines around each hunk.
const contextLines = 3

func (c Change) writeText(b *bytes.Buffer, before, after []byte) {
	oldName, newName := "/dev/null", "/dev/null"
	if c.Before != nil {
		oldName = headerName("a/" + cmp.Or(c.From, c.Path))
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

// writeBinary writes Git's "literal" form: a zlib stream (RFC 1950) of stored
// blocks (RFC 1951 3.2.4), base 85, 52 bytes a line.
func writeBinary(b *bytes.Buffer, data []byte) {
	fmt.Fprintf(b, "GIT binary patch\nliteral %d\n", len(data))
	for chunk := range slices.Chunk(storedZlib(data), 52) {
		// The length as a letter, then five characters for each four bytes, the
		// last group padded with zeros.
		if n := len(chunk); n <= 26 {
			b.WriteByte(byte('A' + n - 1))
		} else {
			b.WriteByte(byte('a' + n - 27))
		}
		for len(chunk) > 0 {
			var word [4]byte
			chunk = chunk[copy(word[:], chunk):]
			v := binary.BigEndian.Uint32(word[:])
			var group [5]byte
			for i := 4; i >= 0; i-- {
				group[i] = base85[v%85]
				v /= 85
			}
			b.Write(group[:])
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

func storedZlib(data []byte) []byte {
	const most = 65535
	out := append(make([]byte, 0, len(data)+len(data)/most*5+16), 0x78, 0x01)
	sum := adler32.Checksum(data)
	for {
		n := min(most, len(data))
		final := byte(0)
		if n == len(data) {
			final = 1
		}
		out = append(out, final, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		out = append(out, data[:n]...)
		if data = data[n:]; final == 1 {
			break
		}
	}
	return binary.BigEndian.AppendUint32(out, sum)
}

const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

func newPatchset(changes []Change) Patchset {
	raw := sync.OnceValue(func() []byte { return encode(changes) })
	id := sync.OnceValue(func() string { return canon.Hex(raw()) })
	return Patchset{Changes: changes, memo: &memo{raw, id}}
}

// ID is the patch_id: the SHA-256 of the canonical bytes, 64 lower-case hex.
func (p Patchset) ID() string {
	if p.memo == nil {
		return canon.Hex(encode(p.Changes))
	}
	return p.memo.id()
}
