package gitpatch

import "bytes"

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
