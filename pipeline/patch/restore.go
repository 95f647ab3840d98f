package patch

import (
	"bytes"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/patch/linediff"
)

// Restore returns the diff with the context and deleted lines that base has
// where it says they are, whatever stands there: a diff that was stored without
// the secrets in these lines becomes itself again. Added lines stay. Whether it
// is the diff that was meant, the ID of what it resolves to says.
func (d Diff) Restore(base fs.FS) (Diff, error) {
	d.sections = slices.Clone(d.sections)
	for i, s := range d.sections {
		if s.does == makes || len(s.hunks) == 0 {
			continue
		}
		f, err := Lookup(base, s.old)
		if err != nil {
			return Diff{}, err
		}
		if f == nil {
			return Diff{}, &Error{Path: s.old, Message: "does not exist in the base commit"}
		}
		lines := linediff.Lines(f.Data)
		hunks := slices.Clone(s.hunks)
		for j := range hunks {
			if !hunks[j].restore(lines) {
				return Diff{}, &Error{Path: s.old, Message: "has fewer lines in the base commit"}
			}
		}
		d.sections[i].hunks = hunks
	}
	return d, nil
}

// restore puts a file's lines into a hunk; false means that there are too few.
func (h *hunk) restore(lines [][]byte) bool {
	if h.at+h.oldLines > len(lines) {
		return false
	}
	lines = lines[h.at:]
	var out []byte
	h.removed = 0
	for rest := h.body; len(rest) > 0; {
		var line []byte
		line, rest = cutLine(rest)
		if line[0] != '+' && line[0] != '\\' {
			line = append([]byte{markOf(line)}, bytes.TrimSuffix(lines[0], []byte("\n"))...)
			line = append(line, '\n')
			lines = lines[1:]
		}
		if line[0] == '-' {
			h.removed += len(line) - 1
		}
		out = append(out, line...)
	}
	h.body = out
	return true
}

// markOf is a hunk line's mark; a bare line is one of context.
func markOf(line []byte) byte {
	if line[0] == '-' {
		return '-'
	}
	return ' '
}
