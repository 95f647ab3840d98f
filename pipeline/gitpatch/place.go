package gitpatch

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxSearched bounds how many bytes are searched for the hunks of one patch.
const maxSearched = 1 << 28

// find returns hunks as they fit a file in which lines above them came or went, each below the one
// before. A hunk that is not where it says, and each below it, must be there exactly once: its context
// and the lines that it removes. Like "git apply" it takes one from the first line on nowhere else, and
// one that no context ends at the end of the file. What never moves is a hunk without such lines, and
// one whose outcome is already where it says. room is how many bytes may be searched.
func find(file []byte, hunks []hunk, room int) (found []hunk, ok bool) {
	starts := lineStarts(file)
	end, shift, moved := 0, 0, false
	for _, h := range hunks {
		old, after := h.without('+'), h.without('-')
		if named := h.at; moved || !fits(file, starts, old, h.at) {
			room -= len(file)
			if room < 0 || len(old) == 0 || len(after) > 0 && fits(file, starts, after, h.at+shift) {
				return nil, false
			}
			there := places(file, old)
			if len(there) != 1 || !fits(file, starts, old, there[0]) || named == 0 && there[0] > 0 {
				return nil, false
			}
			h.at, moved = there[0], moved || there[0] != named
		}
		if h.at < end || h.last() != ' ' && h.at+h.oldLines < len(starts)-1 {
			return nil, false
		}
		end, shift = h.at+h.oldLines, shift+h.newLines-h.oldLines
		found = append(found, h)
	}
	return found, moved
}

// twice reports whether a hunk without context below is in the file already, where it says: what it adds would be added once more.
func twice(file []byte, hunks []hunk) bool {
	starts := lineStarts(file)
	return slices.ContainsFunc(hunks, func(h hunk) bool {
		return h.last() == '+' && h.oldLines > 0 && h.newLines > h.oldLines && fits(file, starts, h.without('-'), h.at)
	})
}

// fits reports whether a file has some lines at a place.
func fits(file []byte, starts []int, lines []byte, at int) bool {
	return at < len(starts) && bytes.HasPrefix(file[starts[at]:], lines) && (bytes.HasSuffix(lines, []byte("\n")) || starts[at]+len(lines) == len(file))
}

// lineStarts are where the lines of a file begin, and its end.
func lineStarts(file []byte) (starts []int) {
	at := 0
	for line := range bytes.Lines(file) {
		starts = append(starts, at)
		at += len(line)
	}
	return append(starts, at)
}

// last is the mark of a hunk's last line.
func (h hunk) last() (last byte) {
	for mark := range h.lines {
		last = mark
	}
	return last
}

// places are how many lines of a file are before some, of several places the first two. A last line that
// has no end counts wherever a line begins like it. It is the algorithm of Knuth, Morris and Pratt: where lines
// repeat, bytes.Index takes as many steps as the file and the lines have bytes, multiplied.
func places(file, lines []byte) (at []int) {
	line := -bytes.Count(lines, []byte("\n"))
	lines = append([]byte("\n"), lines...)
	back := make([]int32, len(lines)) // by where a match ends, how much of another may have begun
	n := int32(0)
	next := func(c byte) {
		for n > 0 && (int(n) == len(lines) || lines[n] != c) {
			n = back[n-1]
		}
		if lines[n] == c {
			n++
		}
	}
	for i := 1; i < len(lines); i++ {
		next(lines[i])
		back[i] = n
	}
	n = 1 // the file's first line begins as if one had ended
	for i := 0; i < len(file) && len(at) < 2; i++ {
		if file[i] == '\n' {
			line++
		}
		if next(file[i]); int(n) == len(lines) {
			at = append(at, line)
		}
	}
	return at
}

// A Mismatch is the first line of a file that is not what a hunk expects. Both are as they stand
// there, with their ends; Has is nil where the file ends before it.
type Mismatch struct {
	Line       int // of the file, from 1
	Wants, Has []byte
	past       int   // the line of a hunk that begins behind the end of the file
	lines      []int // where all lines of the hunk are, of several places the first two
}

// Whole reports whether the line is all that there is to say: the hunk's lines are nowhere, and both have some.
func (m *Mismatch) Whole() bool {
	return m.past == 0 && len(m.lines) == 0 && len(m.Has) > 0 && !bytes.Equal(bytes.TrimRight(m.Has, "\r\n"), bytes.TrimRight(m.Wants, "\r\n"))
}

// maxShown is how long a line may be that an error shows.
const maxShown = 120

func (m *Mismatch) Error() string {
	has, wants := strings.TrimRight(string(m.Has), "\r\n"), strings.TrimRight(string(m.Wants), "\r\n")
	why := ""
	switch {
	case len(m.Has) == 0:
		why = " (the file ends before it)"
	case has == wants:
		why = " (only its line end differs)"
	case len(has) > maxShown || len(wants) > maxShown: // a part of a secret is not known for one
	case strings.Join(strings.Fields(has), "") == strings.Join(strings.Fields(wants), ""):
		why = fmt.Sprintf(": it is %+q, and not %+q (only white space differs)", has, wants)
	default:
		why = fmt.Sprintf(": it is %+q, and not %+q", has, wants)
	}
	text := fmt.Sprintf("line %d is not what the patch expects%s", m.Line, why)
	if m.past > 0 {
		text = fmt.Sprintf("hunk at line %d is past the end of the file", m.past)
	}
	switch len(m.lines) {
	case 1:
		text += fmt.Sprintf("; the hunk's lines are at line %d", m.lines[0])
	case 2:
		text += fmt.Sprintf("; the hunk's lines are at line %d and at line %d, and nothing says which are meant", m.lines[0], m.lines[1])
	}
	return text
}

// misfit says more of a hunk that does not fit where it says: where its lines are, or else which line
// differs where the file is most like them.
func (h hunk) misfit(file []byte, err error) error {
	m, ok := err.(*Mismatch) //nolint:errorlint // it is not wrapped
	old := h.without('+')
	if !ok || len(old) == 0 {
		return err
	}
	for _, at := range places(file, old) {
		if at != h.at && bytes.HasSuffix(old, []byte("\n")) {
			m.lines = append(m.lines, at+1)
		}
	}
	if len(m.lines) > 0 {
		return m
	}
	return nearest(slices.Collect(bytes.Lines(file)), slices.Collect(bytes.Lines(old)), h.at, m)
}

// maxVotes bounds how many pairs of lines are looked at for where a file is most like a hunk.
const maxVotes = 1 << 20

// nearest finds where a file is most like lines, near the place that they name, and what differs
// there first; m, where nothing is like them.
func nearest(file, lines [][]byte, named int, m *Mismatch) *Mismatch {
	in := map[string][]int{}
	for i, line := range lines {
		if len(bytes.TrimSpace(line)) > 0 {
			in[string(line)] = append(in[string(line)], i)
		}
	}
	votes, left := map[int]int{}, maxVotes
	for number, line := range file {
		at := in[string(line)]
		if left -= len(at); left < 0 {
			break
		}
		for _, i := range at {
			if number >= i {
				votes[number-i]++
			}
		}
	}
	best := -1
	for _, at := range slices.Sorted(maps.Keys(votes)) {
		if best < 0 || votes[at] > votes[best] || votes[at] == votes[best] && max(at-named, named-at) < max(best-named, named-best) {
			best = at
		}
	}
	for i := 0; best >= 0 && i < len(lines); i++ {
		has := []byte(nil)
		if best+i < len(file) {
			has = file[best+i]
		}
		if !bytes.Equal(has, lines[i]) {
			return &Mismatch{Line: best + i + 1, Wants: lines[i], Has: has}
		}
	}
	return m
}

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
