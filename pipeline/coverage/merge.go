package coverage

import (
	"bytes"

	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/patch/linediff"
)

// onto is what a change of a file makes of the file as it is somewhere else. It is false
// where the two meet: what should become of the file then, only a person can say.
func onto(c patch.Change, here *patch.File) (*patch.File, bool) {
	switch {
	case here.Equal(c.Before):
		return c.After, true
	case here.Equal(c.After): // it is there already
		return here, true
	case c.Before == nil || c.After == nil || here == nil:
		return nil, false
	}
	mode := here.Mode
	if c.Before.Mode != c.After.Mode {
		if here.Mode != c.Before.Mode && here.Mode != c.After.Mode {
			return nil, false
		}
		mode = c.After.Mode
	}
	if isBinary(c.Before) || isBinary(c.After) || isBinary(here) {
		return nil, false
	}
	data, ok := merge(linediff.Lines(c.Before.Data), linediff.Lines(c.After.Data), linediff.Lines(here.Data))
	return &patch.File{Mode: mode, Data: data}, ok
}

func isBinary(f *patch.File) bool { return bytes.IndexByte(f.Data, 0) >= 0 }

// merge makes both changes of a text. It is false where a line is in both, or where
// there is none between them. A change that both make alike is made once.
func merge(base, after, here [][]byte) ([]byte, bool) {
	theirs, ours := linediff.Diff(base, after), linediff.Diff(base, here)
	var out []byte
	at := 0 // in base
	for len(theirs) > 0 || len(ours) > 0 {
		var next linediff.Edit
		var from [][]byte
		switch {
		case len(theirs) > 0 && len(ours) > 0 && touch(theirs[0], ours[0]):
			if !same(theirs[0], after, ours[0], here) {
				return nil, false
			}
			next, from, theirs, ours = theirs[0], after, theirs[1:], ours[1:]
		case len(ours) == 0 || len(theirs) > 0 && theirs[0].OldStart < ours[0].OldStart:
			next, from, theirs = theirs[0], after, theirs[1:]
		default:
			next, from, ours = ours[0], here, ours[1:]
		}
		out = appendLines(out, base[at:next.OldStart])
		out = appendLines(out, from[next.NewStart:next.NewEnd])
		at = next.OldEnd
	}
	return appendLines(out, base[at:]), true
}

// touch reports whether no line stands between two edits of one text.
func touch(a, b linediff.Edit) bool { return a.OldStart <= b.OldEnd && b.OldStart <= a.OldEnd }

func same(a linediff.Edit, inA [][]byte, b linediff.Edit, inB [][]byte) bool {
	return a.OldStart == b.OldStart && a.OldEnd == b.OldEnd &&
		bytes.Equal(appendLines(nil, inA[a.NewStart:a.NewEnd]), appendLines(nil, inB[b.NewStart:b.NewEnd]))
}

func appendLines(out []byte, lines [][]byte) []byte {
	for _, line := range lines {
		out = append(out, line...)
	}
	return out
}
