package explain

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// mergeFile returns what two sides make of a file together; nil is no file. It is false
// where they meet: both change the same line or lines with none between them, and not
// alike; one removes what the other changes; or a file that is no text changes on both.
// It follows no rename and resolves no conflict. The lines are compared by patch.DiffLines.
func mergeFile(base, ours, theirs *patch.File) (*patch.File, bool) {
	switch {
	case theirs.Equal(base), ours.Equal(theirs):
		return ours, true
	case ours.Equal(base):
		return theirs, true
	case base == nil || ours == nil || theirs == nil:
		return nil, false
	}
	mode := ours.Mode
	if ours.Mode == base.Mode {
		mode = theirs.Mode
	}
	if slices.ContainsFunc([]*patch.File{base, ours, theirs}, isBinary) {
		switch {
		case bytes.Equal(theirs.Data, base.Data):
			return &patch.File{Mode: mode, Data: ours.Data}, true
		case bytes.Equal(ours.Data, base.Data):
			return &patch.File{Mode: mode, Data: theirs.Data}, true
		}
		return nil, false
	}
	data, ok := merge(patch.Lines(base.Data), side{lines: patch.Lines(ours.Data)}, side{lines: patch.Lines(theirs.Data)})
	return &patch.File{Mode: mode, Data: data}, ok
}

// isBinary reports whether a file holds a NUL byte, and so is not merged by lines.
func isBinary(f *patch.File) bool { return bytes.IndexByte(f.Data, 0) >= 0 }

// A side is a text, and what is left of the edits that made it.
type side struct {
	lines [][]byte
	edits []patch.Edit
}

// put writes the base up to the side's next edit, and the edit.
func (s *side) put(out []byte, base [][]byte, at int) ([]byte, int) {
	e := s.edits[0]
	s.edits = s.edits[1:]
	out = appendLines(out, base[at:e.OldStart])
	return appendLines(out, s.lines[e.NewStart:e.NewEnd]), e.OldEnd
}

// merge makes the edits of both sides. Git, too, asks for a line between two of them.
func merge(base [][]byte, a, b side) (out []byte, ok bool) {
	a.edits, b.edits = patch.DiffLines(base, a.lines), patch.DiffLines(base, b.lines)
	at := 0 // in base
	for len(a.edits) > 0 && len(b.edits) > 0 {
		switch x, y := a.edits[0], b.edits[0]; {
		case x.OldEnd < y.OldStart:
			out, at = a.put(out, base, at)
		case y.OldEnd < x.OldStart:
			out, at = b.put(out, base, at)
		case x.OldStart == y.OldStart && x.OldEnd == y.OldEnd && slices.EqualFunc(a.lines[x.NewStart:x.NewEnd], b.lines[y.NewStart:y.NewEnd], bytes.Equal):
			out, at = a.put(out, base, at)
			b.edits = b.edits[1:]
		default:
			return nil, false
		}
	}
	for len(a.edits) > 0 {
		out, at = a.put(out, base, at)
	}
	for len(b.edits) > 0 {
		out, at = b.put(out, base, at)
	}
	return appendLines(out, base[at:]), true
}

func appendLines(out []byte, lines [][]byte) []byte {
	for _, line := range lines {
		out = append(out, line...)
	}
	return out
}

// foreignLines returns the lines of a merged file that neither side has as they stand there,
// or, where each is one side's, those that differ from ours.
func foreignLines(path string, ours, theirs, merged *patch.File) []Lines {
	if ours == nil || merged == nil || isBinary(ours) || isBinary(merged) || theirs != nil && isBinary(theirs) {
		return []Lines{{Path: path}}
	}
	lines := patch.Lines(merged.Data)
	mine := patch.DiffLines(patch.Lines(ours.Data), lines)
	var their []patch.Edit
	if theirs != nil {
		their = patch.DiffLines(patch.Lines(theirs.Data), lines)
	}
	var out, all []Lines
	for _, x := range mine {
		all = append(all, Lines{path, x.NewStart + 1, x.NewEnd})
		for _, y := range their {
			if from, to := max(x.NewStart, y.NewStart), min(x.NewEnd, y.NewEnd); from < to || from == to && x.NewStart == x.NewEnd && y.NewStart == y.NewEnd {
				out = append(out, Lines{path, from + 1, to})
			}
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(all) > 0:
		return all
	}
	return []Lines{{Path: path}}
}

// Commits are those of a repository, as Placed asks for them.
type Commits interface {
	Diff(ctx context.Context, from, to string) (patch.Patchset, error)
	// Parents are those of a commit, in the order in which it has them.
	Parents(ctx context.Context, commit string) ([]string, error)
}

// Placed reports whether a commit, or a row of at most so many that ends at it, makes
// exactly a change of the files before; from is the commit before these. In a row is no merge,
// and no file that the change does not touch. Where other lines of a file have changed since,
// the change has to give what is there, put onto what was before, and what was before, taken
// out of what is there: all of it was made, no part of it before, and nothing beside it.
// The error is one of reading.
func Placed(ctx context.Context, code Commits, want patch.Patchset, tip string, most int) (from string, ok bool, err error) {
	paths := want.Paths()
	for commit, n := tip, 1; n <= most; commit, n = from, n+1 {
		parents, err := code.Parents(ctx, commit)
		if err != nil || len(parents) == 0 || n > 1 && len(parents) > 1 {
			return "", false, err
		}
		from = parents[0]
		made, err := code.Diff(ctx, from, commit)
		beside := func(path string) bool { return !slices.Contains(paths, path) }
		if err != nil || slices.ContainsFunc(made.Paths(), beside) {
			return "", false, unlessUnfit(err)
		}
		if n > 1 {
			made, err = code.Diff(ctx, from, tip)
		}
		if err := unlessUnfit(err); err != nil {
			return "", false, err
		}
		if err == nil && makesAll(made, want) {
			return from, true, nil
		}
		if len(parents) > 1 {
			break
		}
	}
	return "", false, nil
}

// unlessUnfit is an error of reading, and nil for a difference that is no patch.
func unlessUnfit(err error) error {
	if errors.As(err, new(*patch.Error)) {
		return nil
	}
	return err
}

// makesAll reports whether what was made of some files is a change of them.
func makesAll(made, want patch.Patchset) bool {
	return slices.EqualFunc(made.Files(), want.Files(), func(m, w patch.Change) bool {
		return m.Path == w.Path && makes(w, m.Before, m.After)
	})
}
