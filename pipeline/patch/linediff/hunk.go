package linediff

// A Hunk is a run of edits and the common lines around them: OldLines lines from
// OldStart of the old text stand against NewLines lines from NewStart of the new
// one. Lines count from 0.
type Hunk struct {
	OldStart, OldLines, NewStart, NewLines int
	Edits                                  []Edit
}

// Hunks groups the edits of Diff between texts of oldLen and newLen lines as git
// does: each hunk has up to context common lines before and after, and edits
// with at most 2*context common lines between them share one. A context below 0
// is 0.
func Hunks(edits []Edit, oldLen, newLen, context int) []Hunk {
	context = max(context, 0)
	var hunks []Hunk
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].OldStart-edits[n-1].OldEnd-context <= context {
			n++
		}
		hunks = append(hunks, newHunk(edits[:n:n], oldLen, newLen, context))
		edits = edits[n:]
	}
	return hunks
}

func newHunk(edits []Edit, oldLen, newLen, context int) Hunk {
	first, last := edits[0], edits[len(edits)-1]
	before := min(context, first.OldStart, first.NewStart)
	after := min(context, oldLen-last.OldEnd, newLen-last.NewEnd)
	h := Hunk{OldStart: first.OldStart - before, NewStart: first.NewStart - before, Edits: edits}
	h.OldLines = last.OldEnd + after - h.OldStart
	h.NewLines = last.NewEnd + after - h.NewStart
	return h
}
