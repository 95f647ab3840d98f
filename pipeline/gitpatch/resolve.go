package gitpatch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Resolve puts the diff on base, the tree of the commit that is patched. Every
// hunk must apply exactly where it says, but for one that is Moved. The error is a *patch.Error for a diff that
// does not fit, and wraps fs errors where base could not be read; of several it
// is the first in the diff's order.
//
// base should implement fs.ReadLinkFS, so that links are seen and refused. It
// is read from one goroutine.
func (d Diff) Resolve(base fs.FS) (patch.Patchset, error) {
	t := patch.NewTree(base)
	after, offsets, err := d.after(t.File)
	if err != nil {
		return patch.Patchset{}, err
	}
	p, err := t.Between(after)
	p.Offsets = offsets
	var e *patch.Error
	if !errors.As(err, &e) || e.Line != 0 || e.Path == "" {
		return p, err
	}
	for _, s := range d.sections { // the line of the section that makes the path
		if s.new == e.Path {
			return p, patch.At(err, s.line, s.new)
		}
	}
	return p, err
}

// A look returns a file that a diff is put on, nil where there is none.
type look = func(path string) (*patch.File, error)

// Series applies diffs one after the other, each to what those before it leave, and returns
// what all of them come to. Each is made where the files are known that it is put on.
func Series(base fs.FS, diffs []func(look) (Diff, error)) (patch.Patchset, error) {
	t := patch.NewTree(base)
	all := map[string]*patch.File{}
	file := func(path string) (*patch.File, error) {
		if f, made := all[path]; made {
			return f, nil
		}
		return t.File(path)
	}
	var offsets []patch.Offset
	room := int64(maxMade)
	for i, make := range diffs {
		d, err := make(file)
		if err == nil && len(diffs) == 1 {
			return d.Resolve(base)
		}
		var after map[string]*patch.File
		var found []patch.Offset
		if err == nil {
			after, found, err = d.after(file)
		}
		if err != nil && len(diffs) > 1 {
			err = fmt.Errorf("patch %d of %d: %w", i+1, len(diffs), err)
		}
		if err != nil {
			return patch.Patchset{}, err
		}
		room += int64(d.size)
		offsets = append(offsets, found...)
		for path, f := range after {
			if all[path] = f; f != nil {
				room -= int64(len(f.Data))
			}
		}
		if room < 0 {
			return patch.Patchset{}, &patch.Error{Message: "the patches make too much content; give them one at a time"}
		}
	}
	p, err := t.Between(all)
	p.Offsets = offsets
	return p, err
}

// after is the content of each path afterwards, and which hunks were found elsewhere.
func (d Diff) after(file look) (after map[string]*patch.File, offsets []patch.Offset, err error) {
	jobs := d.jobs(file)
	parallel.Do(len(jobs), func(i int) { jobs[i].apply(maxSearched / len(jobs)) })
	after = map[string]*patch.File{}
	// Paths that renames take away may be made anew by other sections (git diff -B -M).
	leaving := map[string]bool{}
	for _, s := range d.sections {
		if s.does == renames {
			leaving[s.old] = true
		}
	}
	for _, j := range jobs {
		if j.err == nil {
			j.err = j.outcome(file, after, leaving)
		}
		if j.err != nil {
			return nil, nil, patch.At(j.err, j.line, j.old)
		}
		offsets = append(offsets, j.offsets...)
	}
	return after, offsets, nil
}

// job is a section with the file that it changes.
type job struct {
	section
	before  *patch.File
	data    []byte // the content afterwards
	offsets []patch.Offset
	err     error
}

// jobs reads the base. The last one has the error if there is one.
func (d Diff) jobs(file look) []job {
	jobs := make([]job, 0, len(d.sections))
	room := int64(maxMade + d.size)
	for _, s := range d.sections {
		j := job{section: s}
		j.before, j.err = s.find(file)
		if j.err == nil {
			var size int64
			size, j.err = s.makesBytes(j.before.Data)
			// Compared one by one, as two sizes of 2^62 add up to a negative one.
			if room -= min(size, room+1); j.err == nil && room < 0 {
				j.err = errMade
			}
			j.err = s.misfit(j.err)
		}
		jobs = append(jobs, j)
		if j.err != nil {
			break
		}
	}
	return jobs
}

// find returns the base file that the section changes, an empty one for a new
// file.
func (s section) find(file look) (*patch.File, error) {
	if s.does == makes {
		return &patch.File{}, nil // whether the path is free is for outcome to say
	}
	before, err := file(s.old)
	switch {
	case err != nil:
		return nil, err
	case before == nil:
		return nil, &patch.Error{Path: s.old, Message: "does not exist in the base commit", Base: true}
	case s.oldMode != 0 && s.oldMode != before.Mode:
		return nil, &patch.Error{Path: s.old, Message: fmt.Sprintf("has mode %s in the base commit, the patch says %s", before.Mode, s.oldMode), Base: true}
	}
	return before, nil
}

func (s section) misfit(err error) error {
	if err == nil {
		return nil
	}
	if err == errMade {
		return &patch.Error{Path: s.old, Message: err.Error()}
	}
	e := &patch.Error{Path: s.old, Message: "does not apply to the base commit: " + err.Error(), Base: true}
	if m := new(Mismatch); errors.As(err, &m) {
		e.Cause = m
	}
	return e
}

// apply makes the content afterwards; room is how many bytes may be searched for hunks that moved.
func (j *job) apply(room int) {
	if j.err != nil {
		return
	}
	var err error
	if j.binary != nil {
		j.data, err = j.applyBinary(j.before.Data)
	} else {
		j.data, err = applyHunks(j.before.Data, j.hunks)
		if err == nil && j.moved && twice(j.before.Data, j.hunks) {
			err = errors.New("the file has the lines that it adds already")
		}
		if err != nil && j.moved {
			if found, ok := find(j.before.Data, j.hunks, room); ok {
				j.data, err = applyHunks(j.before.Data, found)
				j.note(found)
			}
		}
		if err == nil {
			err = j.checkBlobs(j.before.Data, j.data)
		}
	}
	j.err = j.misfit(err)
}

// note notes which hunks were found elsewhere.
func (j *job) note(found []hunk) {
	for i, h := range j.hunks {
		if by := found[i].at - h.at; by != 0 {
			j.offsets = append(j.offsets, patch.Offset{Path: j.new, Line: h.at + 1, By: by})
		}
	}
}

// outcome enters into after what the section leaves behind.
func (j *job) outcome(file look, after map[string]*patch.File, leaving map[string]bool) error {
	if j.does == deletes {
		if len(j.data) > 0 {
			return &patch.Error{Path: j.old, Message: "deletion leaves content behind", Base: true}
		}
		after[j.old] = nil
		return nil
	}
	if j.does != updates && !leaving[j.new] {
		if old, err := file(j.new); err != nil {
			return err
		} else if old != nil {
			return &patch.Error{Path: j.new, Message: "already exists in the base commit", Base: true}
		}
	}
	if _, done := after[j.old]; j.does == renames && !done {
		after[j.old] = nil
	}
	mode := j.newMode
	if mode == 0 {
		mode = j.before.Mode
	}
	after[j.new] = &patch.File{Mode: mode, Data: j.data}
	return nil
}

// Moved returns the diff as one of files that may have changed elsewhere since: of a text, its
// hunks alone say what must be there, as for "git apply", and are looked for where lines above them
// came or went. Of a Patchset that is made so, Offsets says which were found elsewhere.
func (d Diff) Moved() Diff {
	d.sections = slices.Clone(d.sections)
	for i := range d.sections {
		d.sections[i].moved = true
	}
	return d
}

// At returns the diff with other numbers of its lines: those of a text that it was made of.
func (d Diff) At(lines []int) Diff {
	d.sections = slices.Clone(d.sections)
	for i := range d.sections {
		d.sections[i].line = lines[d.sections[i].line]
	}
	return d
}

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
		f, err := patch.Lookup(base, s.old)
		if err != nil {
			return Diff{}, err
		}
		if f == nil {
			return Diff{}, &patch.Error{Path: s.old, Message: "does not exist in the base commit", Try: patch.OnHead}
		}
		lines := patch.Lines(f.Data)
		hunks := slices.Clone(s.hunks)
		for j := range hunks {
			if !hunks[j].restore(lines) {
				return Diff{}, &patch.Error{Path: s.old, Message: "has fewer lines in the base commit", Try: patch.OnHead}
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
			mark := byte(' ') // a bare line is one of context
			if line[0] == '-' {
				mark = '-'
			}
			line = append([]byte{mark}, bytes.TrimSuffix(lines[0], []byte("\n"))...)
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

// A Reader puts diffs on trees, as pipeline.Diffs asks.
type Reader struct{}

// Given puts a diff on a tree; hunks may have moved (see Diff.Moved).
func (Reader) Given(diff []byte, base fs.FS) (patch.Patchset, error) {
	parsed, err := Parse(diff)
	if err != nil {
		return patch.Patchset{}, err
	}
	return parsed.Moved().Resolve(base)
}

// Restored puts a diff on a tree that has lines which it was stored without (see Diff.Restore).
func (Reader) Restored(diff []byte, base fs.FS) (patch.Patchset, error) {
	parsed, err := Parse(diff)
	if err == nil {
		parsed, err = parsed.Restore(base)
	}
	if err != nil {
		return patch.Patchset{}, err
	}
	return parsed.Resolve(base)
}
