package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/patch/linediff"
)

// The bounds of the search for renames: how much of a patch is looked at, and how many
// lines are compared, so that it takes some hundredths of a second at most.
const (
	maxRenamedBytes = 2 << 20
	maxCompared     = 500_000
	leastAlike      = 50 // percent of the bytes, as git has it
)

// A whole file is one that a patch adds, or deletes: the section of the diff that it is,
// its name as it stands there, and its lines, each with how often it is there.
type wholeFile struct {
	section int
	name    string
	lines   [][]byte
	times   map[string]int
	size    int
}

// A rename is a file that a patch deletes, and adds elsewhere with changes. The bytes that
// are approved have it as a deletion and an addition; this is what people are told of it.
type rename struct {
	from, to wholeFile
	alike    int // percent
}

// renames finds the files of canonical bytes that were renamed with changes, in the order in
// which they are added. Those that are most alike belong together; it takes the first of
// several, and looks no further where its bounds are reached.
func renames(diff []byte) []rename {
	gone, made := wholeFiles(diff)
	var pairs []rename
	compared := 0
	for _, to := range made {
		for _, from := range gone {
			if 100*min(from.size, to.size) < leastAlike*max(from.size, to.size) {
				continue
			}
			if compared += min(len(from.times), len(to.times)); compared > maxCompared {
				break
			}
			if n := alike(from, to); n >= leastAlike {
				pairs = append(pairs, rename{from, to, n})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b rename) int { return cmp.Compare(b.alike, a.alike) })
	var out []rename
	taken := map[int]bool{}
	for _, p := range pairs {
		if !taken[p.from.section] && !taken[p.to.section] {
			taken[p.from.section], taken[p.to.section] = true, true
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b rename) int { return a.to.section - b.to.section })
	return out
}

// alike is how much of the larger of two files stands in the other, line by line, in percent.
func alike(a, b wholeFile) int {
	if len(a.times) > len(b.times) {
		a, b = b, a
	}
	common := 0
	for line, n := range a.times {
		common += len(line) * min(n, b.times[line])
	}
	return min(99, 100*common/max(a.size, b.size)) // what is all alike is a plain rename
}

// wholeFiles are the text files that canonical bytes delete, and those that they add.
func wholeFiles(diff []byte) (gone, made []wholeFile) {
	var f wholeFile
	var sign byte // of the lines of a whole file
	keep := func() {
		switch {
		case f.size == 0:
		case sign == '-':
			gone = append(gone, f)
		case sign == '+':
			made = append(made, f)
		}
	}
	section, inHunk := -1, false
	for line := range bytes.Lines(diff[:min(len(diff), maxRenamedBytes)]) {
		switch {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			keep()
			section++
			f, sign, inHunk = wholeFile{section: section, times: map[string]int{}}, 0, false
		case bytes.HasPrefix(line, []byte("@@ ")):
			inHunk = true
		case !inHunk && bytes.Equal(line, []byte("--- /dev/null\n")):
			sign = '+'
		case !inHunk && bytes.Equal(line, []byte("+++ /dev/null\n")):
			sign = '-'
		case !inHunk && (bytes.HasPrefix(line, []byte("--- ")) || bytes.HasPrefix(line, []byte("+++ "))):
			f.name = headerName(string(line[len("+++ "):]))
		case inHunk && sign != 0 && line[0] == sign:
			f.lines = append(f.lines, line[1:])
			f.times[string(line[1:])]++
			f.size += len(line) - 1
		}
	}
	if len(diff) <= maxRenamedBytes { // else the last is not whole
		keep()
	}
	return gone, made
}

// headerName is a name as the header of a diff has it, without the "a/" or "b/" before it.
func headerName(text string) string {
	text = strings.TrimSuffix(text, "\n")
	if rest, quoted := strings.CutPrefix(text, `"`); quoted {
		return `"` + rest[min(2, len(rest)):]
	}
	return text[min(2, len(text)):]
}

// renamed marks the files that were renamed with changes. diff is their canonical bytes.
func renamed(files []File, diff []byte) {
	for _, r := range renames(diff) {
		if r.from.section < len(files) && r.to.section < len(files) {
			files[r.to.section].RenamedFrom, files[r.to.section].Alike = files[r.from.section].Path, r.alike
		}
	}
}

// renamedFrom says what a file was before it was renamed with changes, "" where it was not;
// show makes a name safe.
func (f File) renamedFrom(show func(string) string) string {
	if f.RenamedFrom == "" {
		return ""
	}
	return fmt.Sprintf(", renamed with changes from %s (%d%% alike)", show(f.RenamedFrom), f.Alike)
}

// Renamed shows, below a diff, what changed in files that were renamed: "" where none was. It
// is for eyes alone, and no part of what is approved.
func Renamed(diff []byte, s Style) string {
	var b strings.Builder
	for _, r := range renames(diff) {
		title := fmt.Sprintf("renamed with changes: %s → %s (%d%% alike; only for reading, the bytes above are what counts)", r.from.name, r.to.name, r.alike)
		b.WriteString("\n" + s.paint(bold, Clean(title)) + "\n")
		old, now := r.from.lines, r.to.lines
		for _, h := range linediff.Hunks(linediff.Diff(old, now), len(old), len(now), 3) {
			b.WriteString("  " + s.paint(cyan, fmt.Sprintf("@@ -%d +%d @@", h.OldStart+1, h.NewStart+1)) + "\n")
			at := h.OldStart
			write := func(sign string, lines [][]byte) {
				for _, line := range lines {
					b.WriteString("  " + s.diffLine(sign+strings.TrimSuffix(string(line), "\n"), true) + "\n")
				}
			}
			for _, e := range h.Edits {
				write(" ", old[at:e.OldStart])
				write("-", old[e.OldStart:e.OldEnd])
				write("+", now[e.NewStart:e.NewEnd])
				at = e.OldEnd
			}
			write(" ", old[at:h.OldStart+h.OldLines])
		}
	}
	return b.String()
}
