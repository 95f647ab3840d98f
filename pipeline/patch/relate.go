package patch

import (
	"bytes"

	"github.com/countersign-dev/countersign/pipeline/patch/linediff"
)

// Reverse returns the diff that takes back what another one does, Moved. ok is false where none can tell
// that: of a copy, of a binary section, of lines removed without any context.
func (d Diff) Reverse() (back Diff, ok bool) {
	back.size = d.size
	for _, s := range d.sections {
		if s.binary != nil || s.does == copies {
			return Diff{}, false
		}
		s.does = map[action]action{makes: deletes, deletes: makes, updates: updates, renames: renames}[s.does]
		s.old, s.new, s.oldID, s.newID, s.oldMode, s.newMode, s.moved = s.new, s.old, s.newID, s.oldID, s.newMode, s.oldMode, true
		hunks, shift := s.hunks, 0
		s.hunks = nil
		for _, h := range hunks {
			if h.newLines == 0 && s.does != makes {
				return Diff{}, false
			}
			r := hunk{line: h.line, at: h.at + shift, oldLines: h.newLines, newLines: h.oldLines, removed: h.added, added: h.removed, body: bytes.Clone(h.body)}
			for at := 0; at < len(r.body); {
				line, _ := cutLine(r.body[at:])
				switch at += len(line); line[0] {
				case '-':
					line[0] = '+'
				case '+':
					line[0] = '-'
				}
			}
			shift += h.newLines - h.oldLines
			s.hunks = append(s.hunks, r)
		}
		back.sections = append(back.sections, s)
	}
	return back, true
}

// Below returns the diff with each file below a directory.
func (d Diff) Below(dir string) Diff {
	out := Diff{size: d.size}
	for _, s := range d.sections {
		s.old, s.new = dir+"/"+s.old, dir+"/"+s.new
		out.sections = append(out.sections, s)
	}
	return out
}

// Alike is how many percent of the larger of two files stand in the other as well, line by line.
func Alike(a, b []byte) int {
	times := map[string]int{}
	for _, line := range linediff.Lines(a) {
		times[string(line)]++
	}
	common := 0
	for _, line := range linediff.Lines(b) {
		if times[string(line)] > 0 {
			times[string(line)]--
			common += len(line)
		}
	}
	return 100 * common / max(len(a), len(b), 1)
}
