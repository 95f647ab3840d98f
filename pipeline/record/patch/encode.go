package patch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/adler32"
	"slices"
	"strings"
	"sync"
)

// absentID is the blob id of a file that is not there.
const absentID = "0000000000000000000000000000000000000000"

// Bytes returns the canonical bytes: a Git diff that `git apply` accepts, with
// full blob ids, three lines of context, the edits of DiffLines and
// uncompressed binary literals. docs/spec/patch.md specifies every line. They are
// derived once and must not be modified.
func (p Patchset) Bytes() []byte {
	if p.bytes == nil {
		return encode(p.Changes)
	}
	return p.bytes()
}

// ID is the patch_id: the SHA-256 of the canonical bytes, 64 lower-case hex.
func (p Patchset) ID() string { return hash(p.Bytes()) }

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func newPatchset(changes []Change) Patchset {
	return Patchset{Changes: changes, bytes: sync.OnceValue(func() []byte { return encode(changes) })}
}

func encode(changes []Change) []byte {
	var b bytes.Buffer
	for _, c := range changes {
		c.write(&b)
	}
	return b.Bytes()
}

// Bytes returns the canonical bytes of this one change.
func (c Change) Bytes() []byte { return encode([]Change{c}) }

func (c Change) write(b *bytes.Buffer) {
	p := Part{Kind: c.Kind, Path: c.Path, From: c.From, OldID: absentID, NewID: absentID}
	var before, after []byte
	if c.Before != nil {
		p.Before, p.OldID, before = c.Before.Mode, c.Before.BlobID(), c.Before.Data
	}
	if c.After != nil {
		p.After, p.NewID, after = c.After.Mode, c.After.BlobID(), c.After.Data
	}
	b.WriteString(p.header())
	switch {
	case bytes.Equal(before, after):
	case isBinary(before) || isBinary(after):
		writeBinary(b, after)
	default:
		b.WriteString(p.Names())
		old, new := Lines(before), Lines(after)
		for _, h := range LineHunks(DiffLines(old, new), len(old), len(new), contextLines) {
			writeHunk(b, h, old, new)
		}
	}
}

// header is what stands above the content of a file. The index line binds the
// content even where no hunk shows it (a rename, a mode change, an empty file).
func (p Part) header() string {
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", QuoteName("a/"+p.Old()), QuoteName("b/"+p.Path))
	mode := ""
	switch {
	case p.Before == 0:
		fmt.Fprintf(&b, "new file mode %s\n", p.After)
	case p.After == 0:
		fmt.Fprintf(&b, "deleted file mode %s\n", p.Before)
	case p.Before != p.After:
		fmt.Fprintf(&b, "old mode %s\nnew mode %s\n", p.Before, p.After)
	default:
		mode = " " + p.After.String()
	}
	if p.Kind == Rename {
		fmt.Fprintf(&b, "similarity index 100%%\nrename from %s\nrename to %s\n", QuoteName(p.From), QuoteName(p.Path))
	}
	fmt.Fprintf(&b, "index %s..%s%s\n", p.OldID, p.NewID, mode)
	return b.String()
}

// Names are the lines above the hunks of a text.
func (p Part) Names() string {
	old, new := "/dev/null", "/dev/null"
	if p.Before != 0 {
		old = headerName("a/" + p.Old())
	}
	if p.After != 0 {
		new = headerName("b/" + p.Path)
	}
	return "--- " + old + "\n+++ " + new + "\n"
}

// isBinary: a file with a NUL byte anywhere is not shown as text.
func isBinary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 }

// QuoteName writes a name as Git does in headers. Only a double quote needs
// it: CheckPath refuses control characters and backslashes.
func QuoteName(name string) string {
	if !strings.Contains(name, `"`) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `\"`) + `"`
}

// headerName is QuoteName with the tab that ends an unquoted name with spaces
// in a --- or +++ line.
func headerName(name string) string {
	if q := QuoteName(name); q != name || !strings.Contains(name, " ") {
		return q
	}
	return name + "\t"
}

// contextLines is the number of unchanged lines around each hunk.
const contextLines = 3

func writeHunk(b *bytes.Buffer, h LineHunk, old, new [][]byte) {
	size := 100 // a large hunk is written without growing, which would take its memory three times
	for _, e := range h.Edits {
		for _, line := range new[e.NewStart:e.NewEnd] {
			size += 1 + len(line)
		}
	}
	for _, line := range old[h.OldStart : h.OldStart+h.OldLines] {
		size += 1 + len(line)
	}
	b.Grow(size)
	b.WriteString(hunkHeader(h.OldStart, h.OldLines, h.NewStart, h.NewLines))
	at := h.OldStart
	for _, e := range h.Edits {
		writeLines(b, ' ', old[at:e.OldStart])
		writeLines(b, '-', old[e.OldStart:e.OldEnd])
		writeLines(b, '+', new[e.NewStart:e.NewEnd])
		at = e.OldEnd
	}
	writeLines(b, ' ', old[at:h.OldStart+h.OldLines])
}

func hunkHeader(oldStart, oldLines, newStart, newLines int) string {
	return "@@ -" + hunkRange(oldStart, oldLines) + " +" + hunkRange(newStart, newLines) + " @@\n"
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

// noNewline is the line after one that has no LF.
const noNewline = "\\ No newline at end of file\n"

func writeLines(b *bytes.Buffer, mark byte, lines [][]byte) {
	for _, line := range lines {
		b.WriteByte(mark)
		b.Write(line)
		if line[len(line)-1] != '\n' {
			b.WriteString("\n" + noNewline)
		}
	}
}

// binaryMark is the line above a binary content.
const binaryMark = "GIT binary patch\n"

// writeBinary writes Git's "literal" form: a zlib stream (RFC 1950) of stored
// blocks (RFC 1951 3.2.4), base 85, 52 bytes a line.
func writeBinary(b *bytes.Buffer, data []byte) {
	fmt.Fprintf(b, "%sliteral %d\n", binaryMark, len(data))
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
