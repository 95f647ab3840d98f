package html

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// The bounds of the search for changed words: the length of a line, in characters, and the work for
// all diffs of a page, in comparisons of two words.
const (
	maxWordLine = 1000
	maxWordWork = 1 << 25
)

// An extent is some bytes of a line's text.
type extent struct{ from, to int }

// changedWords are what differs between the removed and the added lines of the change that is open,
// where there are as many of them: the first of one belongs to the first of the other. What is not marked of
// two lines is the same in both.
func (d *drawer) changedWords() (old, now [][]extent) {
	old, now = make([][]extent, len(d.removed)), make([][]extent, len(d.added))
	was, is := places(d.removed), places(d.added)
	if len(was) != len(is) {
		return old, now
	}
	for i := range was {
		old[was[i]], now[is[i]] = d.differ(d.removed[was[i]].Text, d.added[is[i]].Text)
	}
	return old, now
}

// places are where among lines those of a file are.
func places(lines []gitpatch.Line) (out []int) {
	for i, l := range lines {
		if l.Mark != '\\' {
			out = append(out, i)
		}
	}
	return out
}

// differ marks what differs between two lines, nothing where they have less than a third in common.
func (d *drawer) differ(a, b []byte) (old, now []extent) {
	if max(utf8.RuneCount(a), utf8.RuneCount(b)) > maxWordLine {
		return nil, nil
	}
	was, wasAt := words(a)
	is, isAt := words(b)
	n := len(was) + len(is)
	if d.words -= n * n; d.words < 0 {
		return nil, nil
	}
	common, last := len(a), 0 // last is where the edit before ended
	for _, e := range patch.DiffLines(was, is) {
		common -= wasAt[e.OldEnd] - wasAt[e.OldStart]
		if len(old) > 0 && last == e.OldStart-1 && len(bytes.TrimSpace(was[last])) == 0 { // only a blank between
			old[len(old)-1].to, now[len(now)-1].to = wasAt[e.OldEnd], isAt[e.NewEnd]
		} else {
			old, now = append(old, extent{wasAt[e.OldStart], wasAt[e.OldEnd]}), append(now, extent{isAt[e.NewStart], isAt[e.NewEnd]})
		}
		last = e.OldEnd
	}
	if 3*common < max(len(a), len(b)) {
		return nil, nil
	}
	empty := func(w extent) bool { return w.from == w.to }
	return slices.DeleteFunc(old, empty), slices.DeleteFunc(now, empty)
}

// words are the words of a line: runs of letters and digits, runs of blanks, and other signs each
// by itself; and where each of them begins, and the last ends.
func words(line []byte) (out [][]byte, at []int) {
	kind := func(r rune) int {
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	before := 0
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRune(line[i:])
		k := kind(r)
		if k == 0 || k != before {
			out, at = append(out, nil), append(at, i)
		}
		i += size
		out[len(out)-1], before = line[at[len(at)-1]:i], k
	}
	return out, append(at, len(line))
}
