package secret

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/redact"
)

// Patch returns the secrets that a patch introduces: in added lines, in the
// names and the content of added and renamed files, and in binary files. What
// stands in a line that the patch leaves as it was is not introduced. Sorted by
// path and line.
func (f *Finder) Patch(set patch.Patchset) []redact.Finding {
	_, found, _ := f.Learn(set)
	return found
}

// Learn is Patch, and returns a Finder that also knows the secrets in and
// around what the patch touches: with it, Diff and Text redact them where
// their context is out of sight, as in a hunk within a long key. clean is its
// Diff of the patch.
func (f *Finder) Learn(set patch.Patchset) (knows redact.Finder, found []redact.Finding, clean []byte) {
	diff := set.Bytes()
	d := newDiffText(f.rules(), diff)
	unsearched := d.beside(set)
	spans, secrets := f.search(d)
	g := f.learning(secrets)
	if clean = diff; len(spans) > 0 { // else nothing was found in more than the diff
		clean = g.Diff(diff)
	}
	found = append(unsearched, d.introduced(set, spans)...)
	for i, c := range set.Changes {
		if d.files[min(i+1, len(d.files)-1)].fresh {
			for _, n := range g.Find(c.Path) {
				found = append(found, redact.Finding{Path: c.Path, Line: 0, Kind: n.Kind})
			}
			if kind := g.rules().names(c.Path); kind != "" {
				found = append(found, redact.Finding{Path: c.Path, Line: 0, Kind: kind})
			}
		}
	}
	for i := range found {
		found[i].Path = g.Text(found[i].Path)
	}
	slices.SortFunc(found, func(a, b redact.Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Kind, b.Kind))
	})
	return g, slices.Compact(found), clean
}

const (
	// Around each hunk so much of the file is searched with it, unless the
	// whole would be much more than the diff.
	around = 8 << 10
	// So much content of renamed files is searched; the rest is reported as
	// unscanned.
	maxRenamed = 64 << 20
)

// beside appends content that the diff does not show: renamed files, and what
// stands around the hunks. It returns the files that are too much.
func (d *diffText) beside(set patch.Patchset) (unsearched []redact.Finding) {
	if len(d.files) != len(set.Changes)+1 {
		return nil // larger than maxDocument: taken whole
	}
	d.text = slices.Clip(d.text)
	left := 2*len(d.text) + freeWork
	hunks, renames := d.hunks(), maxRenamed
	for i, c := range set.Changes {
		file := int32(i + 1)
		d.files[file] = diffFile{c.Path, c.Kind == patch.Add || c.Kind == patch.Rename}
		switch c.Kind {
		case patch.Rename:
			if len(c.After.Data) > renames {
				unsearched = append(unsearched, redact.Finding{Path: c.Path, Line: 1, Kind: KindUnscanned})
				continue
			}
			renames -= len(c.After.Data)
			d.append(c.After.Data, 0, len(c.After.Data), diffLine{file: file, is: 1})
		case patch.Update:
			d.regions(c.Before.Data, hunks[file], &left, func(h diffLine) int32 { return h.was }, diffLine{file: file})
			d.regions(c.After.Data, hunks[file], &left, func(h diffLine) int32 { return h.is }, diffLine{file: file, is: 1})
		}
	}
	return unsearched
}

// hunks returns the first line of each hunk, by file.
func (d *diffText) hunks() map[int32][]diffLine {
	out := map[int32][]diffLine{}
	last := int32(-1)
	for _, l := range d.lines {
		if l.role >= context && l.role <= removed && l.hunk != last {
			out[l.file], last = append(out[l.file], l), l.hunk
		}
	}
	return out
}

// append adds data[from:to] as a line of its own, which begins as line like.is
// of the file if that is set.
func (d *diffText) append(data []byte, from, to int, like diffLine) {
	d.text = append(d.text, '\n')
	like.from, like.role = int32(len(d.text)), beside
	d.text = append(d.text, data[from:to]...)
	like.to = int32(len(d.text))
	d.lines = append(d.lines, like)
}

// regions appends what stands around the hunks of one side of a file.
func (d *diffText) regions(data []byte, hunks []diffLine, left *int, number func(diffLine) int32, like diffLine) {
	is, line, at, done := like.is, int32(1), 0, 0
	for _, h := range hunks {
		for ; line < number(h) && at < len(data); line++ {
			at = lineAfter(data, at)
		}
		from := max(done, at-around)
		to := min(len(data), at+around)
		if from >= to || to-from > *left {
			continue
		}
		if is > 0 {
			like.is = line - int32(bytes.Count(data[from:max(at, from)], []byte("\n")))
		}
		*left -= to - from
		d.append(data, from, to, like)
		done = to
	}
}

func lineAfter(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(data)
}

// introduced picks from spans what the patch adds.
func (d *diffText) introduced(set patch.Patchset, spans []span) (out []redact.Finding) {
	fresh := map[int32][]int32{} // added lines, by file
	for _, l := range d.lines {
		if l.role == added {
			fresh[l.file] = append(fresh[l.file], l.is)
		}
	}
	seen := map[int]bool{} // secrets reported at an earlier line
	for _, s := range spans {
		i := sort.Search(len(d.lines), func(i int) bool { return int(d.lines[i].to) > s.start })
		if i == len(d.lines) {
			continue
		}
		l := d.lines[i]
		line := int32(0)
		switch {
		case l.role == added:
			line = l.is
		case l.role == payload:
			line = 1
		case l.role == beside && l.is > 0:
			line = d.lineBeside(set, i, s, fresh[l.file])
		}
		if line > 0 && !seen[s.id] {
			seen[s.id] = s.id > 0
			out = append(out, redact.Finding{Path: d.files[l.file].path, Line: int(line), Kind: s.kind})
		}
	}
	return out
}

// lineBeside returns the first line of s, in content beside the diff, that the
// patch adds; 0 if it adds none of them.
func (d *diffText) lineBeside(set patch.Patchset, i int, s span, fresh []int32) int32 {
	l := &d.lines[i]
	// Spans come in order: counting goes on where it ended.
	l.is += int32(bytes.Count(d.text[l.from:s.start], []byte("\n")))
	l.from = int32(s.start)
	if set.Changes[l.file-1].Kind == patch.Rename {
		return l.is
	}
	last := l.is + int32(bytes.Count(d.text[s.start:s.end], []byte("\n")))
	j, _ := slices.BinarySearch(fresh, l.is)
	if j < len(fresh) && fresh[j] <= last {
		return fresh[j]
	}
	return 0
}
