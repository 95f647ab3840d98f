package code

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Put puts a patch on base, the tree of the commit that is patched: every
// hunk exactly where it says. The error is an *Error for a diff that does not fit,
// and wraps fs errors where base could not be read. Whether the canonical bytes of
// what it returns are those that were read, its ID says.
//
// base should implement fs.ReadLinkFS, so that links are seen and refused. It
// is read from one goroutine.
func Put(d patch.Diff, base fs.FS) (patch.Patchset, error) {
	t, after := patch.NewTree(base), map[string]*patch.File{}
	for _, p := range d.Parts {
		before, err := t.File(p.Old())
		if err == nil && p.Kind == patch.Rename {
			after[p.From] = nil
			var taken *patch.File
			if taken, err = t.File(p.Path); err == nil && taken != nil {
				err = &patch.Error{Path: p.Path, Message: "already exists in the base commit", Base: true}
			}
		}
		if err == nil {
			after[p.Path], err = apply(p, before)
		}
		if err != nil {
			return patch.Patchset{}, patch.At(err, p.Line, p.Old())
		}
	}
	set, err := t.Between(after)
	var e *patch.Error
	if errors.As(err, &e) {
		for _, p := range d.Parts { // the line of the part that makes the path
			if p.Path == e.Path {
				return set, patch.At(err, p.Line, p.Path)
			}
		}
	}
	return set, err
}

// apply returns the file that a part makes of another one.
func apply(p patch.Part, before *patch.File) (*patch.File, error) {
	fail := func(message string) (*patch.File, error) { return nil, &patch.Error{Message: message, Base: true} }
	switch {
	case p.Kind == patch.Add && before != nil:
		return fail("already exists in the base commit")
	case p.Kind == patch.Add:
		before = &patch.File{}
	case before == nil:
		return fail("does not exist in the base commit")
	case before.Mode != p.Before:
		return fail(fmt.Sprintf("has mode %s in the base commit, the patch says %s", before.Mode, p.Before))
	case before.BlobID() != p.OldID:
		return fail("does not apply to the base commit: its index line names another content")
	}
	after := &patch.File{Mode: p.After, Data: p.Data}
	var err error
	if !p.Binary {
		after.Data, err = applyHunks(before.Data, p.Hunks)
	}
	switch {
	case err != nil:
		return fail("does not apply to the base commit: " + err.Error())
	case p.Kind == patch.Delete && len(p.Hunks) > 0 && len(after.Data) > 0:
		return fail("deletion leaves content behind")
	case p.Kind == patch.Delete:
		return nil, nil
	case after.BlobID() != p.NewID:
		return fail("does not apply to the base commit: it does not give the content that its index line names")
	}
	return after, nil
}

// applyHunks puts hunks exactly where they say.
func applyHunks(before []byte, hunks []patch.Hunk) ([]byte, error) {
	if len(hunks) == 0 {
		return before, nil
	}
	rest, at, size := before, 0, len(before)
	for _, h := range hunks {
		size += len(h.Body)
	}
	out := make([]byte, 0, size)
	for _, h := range hunks {
		for ; at < h.At && len(rest) > 0; at++ {
			var line []byte
			line, rest = patch.CutLine(rest)
			out = append(out, line...)
		}
		if at < h.At {
			return nil, errors.New("a hunk is past the end of the file")
		}
		for mark, text := range h.Lines {
			if mark != '+' {
				var line []byte
				if line, rest = patch.CutLine(rest); len(line) == 0 || !bytes.Equal(line, text) {
					return nil, fmt.Errorf("line %d is not what the patch expects", at+1)
				}
				at++
			}
			if mark != '-' {
				out = append(out, text...)
			}
		}
	}
	return append(out, rest...), nil
}
