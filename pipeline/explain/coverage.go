package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Whether approved patches account for a change is told by making it again: each patch is put
// onto the files before, and what comes of all of them is compared with what is there, byte for
// byte. A patch fits where the file is as it was when the patch was approved. Where other lines
// of the file have changed since, both changes are made, as in a three-way merge by the line
// diff of patch.DiffLines. Each has to be made there as a whole: taken out again, it gives what was before it.

// A Making says what approved patches are to a change.
type Making string

// The makings.
const (
	Exact      Making = "exact"       // the change is one of the patches, byte for byte
	Replay     Making = "replay"      // it is what the patches make of the tree that it began on
	NotCovered Making = "not_covered" // something is in it that is in no patch
)

// A Patch is one that was approved, as it was on the tree that it was approved on.
type Patch struct {
	ID  string // of its transaction
	Set patch.Patchset
}

// Lines are some that no patch accounts for: From to To of the file as it is after the
// change, counted from 1. Where lines are missing there, To is From-1. Where From is 0 it
// is the file as a whole that is: it was made, deleted, has another mode, or is no text.
type Lines struct {
	Path string `json:"path"`
	From int    `json:"from"`
	To   int    `json:"to"`
}

// cover puts patches there one after the other, each the first that brings the tree nearer to what it should be, and tells which,
// and the lines that are in none.
func (s *state) cover(patches []Patch) (used []string, left []Lines) {
	nearer := func(p Patch) bool {
		files, fits := s.fits(p.Set)
		return fits && s.gain(files) > 0
	}
	patches = slices.Clone(patches)
	for i := slices.IndexFunc(patches, nearer); i >= 0; i = slices.IndexFunc(patches, nearer) {
		files, _ := s.fits(patches[i].Set)
		maps.Copy(s.now, files)
		used, patches = append(used, patches[i].ID), slices.Delete(patches, i, i+1)
	}
	return used, s.missing()
}

// together finds the sets of patches, more than one each, that make a change if they are put
// there one after the other. Of those of which a part does, none is told. It is not whole if there were
// more than maxWays to try.
func (start *state) together(patches []Patch) (found [][]string, whole bool) {
	if !start.within(patches) {
		return nil, true
	}
	seen, tried := map[string]bool{}, 0 // sets of patches, in their order here; and how often one was put somewhere
	var try func(s *state, used []int) bool
	try = func(s *state, used []int) bool {
		key := fmt.Sprint(slices.Sorted(slices.Values(used)))
		if seen[key] {
			return true
		}
		seen[key] = true
		if len(s.missing()) == 0 {
			if len(used) > 1 {
				var ids []string
				for _, n := range used {
					ids = append(ids, patches[n].ID)
				}
				found = append(found, ids)
			}
			return true
		}
		type step struct {
			n, gain int
			now     *state
		}
		var next []step
		for n, p := range patches {
			if slices.Contains(used, n) {
				continue
			}
			if tried++; tried > maxWays {
				return false
			}
			if files, fits := s.fits(p.Set); fits {
				gain := s.gain(files)
				now := &state{s.want, maps.Clone(s.now)}
				maps.Copy(now.now, files)
				next = append(next, step{n, gain, now})
			}
		}
		slices.SortStableFunc(next, func(a, b step) int { return cmp.Compare(min(1, b.gain), min(1, a.gain)) })
		for _, n := range next {
			if !try(n.now, append(slices.Clip(used), n.n)) {
				return false
			}
		}
		return true
	}
	whole = try(start, nil)
	return found, whole
}

// within reports whether patches change all files that a tree still lacks, and have all lines that
// it has nothing of, or that are to go: else there is no need to try them.
func (s *state) within(patches []Patch) bool {
	has := map[string]bool{}
	for _, p := range patches {
		for _, c := range p.Set.Files() {
			has[c.Path] = true
			old, now := linesOf(c.Before), linesOf(c.After)
			for _, e := range patch.DiffLines(old, now) {
				for _, line := range old[e.OldStart:e.OldEnd] {
					has[c.Path+"-"+string(line)] = true
				}
				for _, line := range now[e.NewStart:e.NewEnd] {
					has[c.Path+"+"+string(line)] = true
				}
			}
		}
	}
	lacks := func(sign string, in, of [][]byte) bool {
		there := map[string]bool{}
		for _, line := range of {
			there[string(line)] = true
		}
		return slices.ContainsFunc(in, func(line []byte) bool { return !there[string(line)] && !has[sign+string(line)] })
	}
	for path, want := range s.want {
		old, now := linesOf(s.now[path]), linesOf(want)
		if !has[path] || lacks(path+"-", old, now) || lacks(path+"+", now, old) {
			return false
		}
	}
	return true
}

// takes reports whether one of some patches fits, as the first of all has to.
func (s *state) takes(patches []Patch) bool {
	return slices.ContainsFunc(patches, func(p Patch) bool { _, fits := s.fits(p.Set); return fits })
}

// linesOf are those of a file, none of no file.
func linesOf(f *patch.File) [][]byte {
	if f == nil {
		return nil
	}
	return patch.Lines(f.Data)
}

// state is a tree, as far as a change or a patch concerns it: what it should be, and what
// the patches so far have made of it.
type state struct {
	want, now map[string]*patch.File // by path; nil for no file
}

func newState(change patch.Patchset) *state {
	s := &state{want: map[string]*patch.File{}, now: map[string]*patch.File{}}
	for _, c := range change.Files() {
		s.want[c.Path], s.now[c.Path] = c.After, c.Before
	}
	return s
}

// fits is what a patch makes of its files, and whether it fits. One that touches a file
// which the change leaves alone does not.
func (s *state) fits(p patch.Patchset) (map[string]*patch.File, bool) {
	out := map[string]*patch.File{}
	for _, c := range p.Files() {
		here, known := s.now[c.Path]
		if !known {
			return nil, false
		}
		after, ok := mergeFile(c.Before, here, c.After)
		if !ok || !makes(c, here, after) {
			return nil, false
		}
		out[c.Path] = after
	}
	return out, true
}

// gain is how many fewer lines some files would leave to account for.
func (s *state) gain(files map[string]*patch.File) (gain int) {
	for path, f := range files {
		gain += distance(s.now[path], s.want[path]) - distance(f, s.want[path])
	}
	return gain
}

// distance counts the lines that differ; a file that is none, has another mode or is no
// text differs by more.
func distance(a, b *patch.File) int {
	if a.Equal(b) {
		return 0
	}
	n := 1
	for _, f := range []*patch.File{a, b} {
		if f == nil {
			n++
		}
	}
	for _, e := range patch.DiffLines(linesOf(a), linesOf(b)) {
		n += e.OldEnd - e.OldStart + e.NewEnd - e.NewStart
	}
	return n
}

// missing are the lines in which the tree is not what it should be.
func (s *state) missing() []Lines {
	var out []Lines
	for _, path := range slices.Sorted(maps.Keys(s.want)) {
		now, want := s.now[path], s.want[path]
		if now.Equal(want) {
			continue
		}
		if now == nil || want == nil || now.Mode != want.Mode || isBinary(now) || isBinary(want) {
			out = append(out, Lines{Path: path})
			continue
		}
		for _, e := range patch.DiffLines(patch.Lines(now.Data), patch.Lines(want.Data)) {
			out = append(out, Lines{path, e.NewStart + 1, e.NewEnd})
		}
	}
	return out
}
