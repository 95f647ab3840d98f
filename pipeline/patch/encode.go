package patch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
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
	parallel(len(changes), func(i int) { pieces[i] = changes[i].Bytes() })
	if len(pieces) == 1 {
		return slices.Clip(pieces[0])
	}
	return bytes.Join(pieces, nil)
}

// Bytes returns the canonical bytes of this one change.
func (c Change) Bytes() []byte {
	var b bytes.Buffer
	c.write(&b)
	return b.Bytes()
}

func (c Change) write(b *bytes.Buffer) {
	from := c.Path
	if c.Kind == Rename {
		from = c.From
	}
	fmt.Fprintf(b, "diff --git %s %s\n", quoteName("a/"+from), quoteName("b/"+c.Path))
	c.writeModes(b)
	if c.Kind == Rename {
		fmt.Fprintf(b, "similarity index 100%%\nrename from %s\nrename to %s\n", quoteName(from), quoteName(c.Path))
	}
	c.writeIndex(b)
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

func (c Change) writeModes(b *bytes.Buffer) {
	switch {
	case c.Before == nil:
		fmt.Fprintf(b, "new file mode %s\n", c.After.Mode)
	case c.After == nil:
		fmt.Fprintf(b, "deleted file mode %s\n", c.Before.Mode)
	case c.Before.Mode != c.After.Mode:
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", c.Before.Mode, c.After.Mode)
	}
}

// writeIndex binds the content even where no hunk shows it (a rename, a mode
// change, an empty file).
func (c Change) writeIndex(b *bytes.Buffer) {
	before, after := absentID, absentID
	if c.Before != nil {
		before = c.Before.BlobID()
	}
	if c.After != nil {
		after = c.After.BlobID()
	}
	fmt.Fprintf(b, "index %s..%s", before, after)
	if c.Before != nil && c.After != nil && c.Before.Mode == c.After.Mode {
		fmt.Fprintf(b, " %s", c.After.Mode)
	}
	b.WriteByte('\n')
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
