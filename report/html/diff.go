package html

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/view"
)

// maxOpenLines is how many lines of a file's diff are shown without a click, maxPaperLines how many
// of all files are on paper, where none is cut.
const (
	maxOpenLines  = 400
	maxPaperLines = 30
)

// A changedFile is one file as the page shows it: a section of the diff, or the two of a rename.
type changedFile struct {
	view.File        // of which the numbers are of what the section shows; empty where the record does not name it
	Number    int    // of the section, from 1: it is #file-N of the page
	Name      string // "old → new" of a rename
	Note      string // "renamed, 72 % alike", "PNG, 41.2 → 43.0 KB", "" for nothing
	Closed    bool   // whether its diff opens on a click

	diff      []byte // canonical bytes, or of a rename what differs
	gone, now []byte // the canonical bytes of a rename, of both files
	Old       int    // the number of the file that is gone, 0 for no rename

	// For its template, which shows of a rename what differs, and both files.
	Shown, Gone, Now *Body
	Exact            []byte // canonical bytes that are left out on paper
}

// changedFiles are the files of the diff in its order, a rename where its new file is; without the diff they
// are those of the record, and have no lines.
func (t Transaction) changedFiles() []changedFile {
	out := make([]changedFile, max(len(t.stats), len(t.View.Files)))
	for i := range out {
		f := &out[i]
		f.Number, f.Name = i+1, fmt.Sprintf("file %d", i+1)
		if i < len(t.View.Files) {
			f.File, f.Name = t.View.Files[i], t.View.Files[i].Path
		}
		if i >= len(t.stats) {
			f.Binary = true
			continue
		}
		if f.From != "" {
			f.Name, f.Note = f.From+" → "+f.Name, "renamed"
		}
		s := t.stats[i]
		if f.diff = s.Diff; s.Binary {
			f.Note = content(s, t.Risks, f.Name)
		}
		f.count(s)
	}
	for _, r := range t.renamings {
		old, f := out[r.From], &out[r.To]
		f.Name, f.Note, f.gone, f.now, f.Old = old.Name+" → "+f.Name, fmt.Sprintf("renamed, %d %% alike", r.Alike), old.diff, f.diff, r.From+1
		f.diff = r.Diff
		f.count(gitpatch.Stats(r.Diff)[0])
		out[r.From].diff = nil
	}
	if t.Patch == nil {
		return out
	}
	return slices.DeleteFunc(out, func(f changedFile) bool { return f.diff == nil })
}

// count takes the numbers of a diff.
func (f *changedFile) count(s gitpatch.Stat) {
	f.Added, f.Deleted, f.Binary, f.Closed = s.Added, s.Deleted, s.Binary, s.Binary || s.Lines > maxOpenLines
	if f.Closed && !f.Binary {
		f.Note = strings.TrimPrefix(fmt.Sprintf("%s, %d lines", f.Note, s.Lines), ", ")
	}
}

// content is what a binary file is: "PNG, 41.2 → 43.0 KB". The diff does not have what it was before:
// its size then is from the list of risks, where that tells the size after as the diff does.
func content(s gitpatch.Stat, list *risk.List, name string) string {
	if s.Size < 0 || len(s.Begins) == 0 {
		return "binary"
	}
	sizes := []int{s.Size}
	if list != nil {
		for _, r := range list.Risks {
			var was, is int
			_, detail, _ := strings.Cut(r.Detail, ", ")
			if n, _ := fmt.Sscanf(detail, "%d → %d byte", &was, &is); r.Kind == risk.Binary && r.Path == name && n == 2 && is == s.Size {
				sizes = []int{was, is}
			}
		}
	}
	return strings.TrimSuffix(risk.Format(s.Begins), " image") + ", " + inBytes(sizes)
}

// inBytes are sizes in the unit of the largest.
func inBytes(sizes []int) string {
	by, unit := 1.0, "bytes"
	switch most := slices.Max(sizes); {
	case most >= 1e6:
		by, unit = 1e6, "MB"
	case most >= 1e3:
		by, unit = 1e3, "KB"
	}
	return view.Joined(sizes, " → ", func(n int) string {
		return strconv.FormatFloat(float64(n)/by, 'f', map[bool]int{true: 0, false: 1}[by == 1], 64)
	}) + " " + unit
}

// diff is the files of a diff, a section each. Its canonical bytes stand there once, so that
// they can be selected and compared; of a rename they are below what differs. Two style rules set the
// removed and the added lines of a change below each other, or side by side.
func (s *sheet) diff() *Body {
	d := drawer{Body: new(Body), words: maxWordWork}
	out := new(Body)
	paper := maxPaperLines
	for _, f := range s.Files {
		f.Shown = d.draw(f.diff, f.Old > 0)
		exact := f.diff
		if f.Old > 0 {
			f.Gone, f.Now, exact = d.draw(f.gone, false), d.draw(f.now, false), slices.Concat(f.gone, f.now)
		}
		if n := bytes.Count(f.diff, []byte("\n")); !f.Binary && n <= paper {
			paper -= n
		} else {
			f.Exact = exact
		}
		out.Add(Fill(templates, "file", f, nil))
	}
	return out
}

// hidden reports whether what does not show is marked in markup.
func hidden(b *Body) bool { return bytes.Contains(b.b, []byte(`class="hidden"`)) }

// A drawer writes diffs line by line.
type drawer struct {
	*Body
	words          int             // work that is left for the search of changed words
	removed, added []gitpatch.Line // of the change that is open, with what says that a newline is missing
}

// draw is a diff, or of a rename what differs: the title says all of its header but the modes.
func (d *drawer) draw(diff []byte, renamed bool) *Body {
	d.Body = new(Body)
	for l := range gitpatch.Lines(diff) {
		if !renamed || l.Mark != 0 || bytes.HasPrefix(l.Raw, []byte("old mode ")) || bytes.HasPrefix(l.Raw, []byte("new mode ")) {
			d.line(l)
		}
	}
	d.endChange()
	return d.Body
}

// line writes a line, or keeps it until its change is whole. A removed line after an added one begins
// another change.
func (d *drawer) line(l gitpatch.Line) {
	switch {
	case l.Mark == '-' && len(d.added) > 0:
		d.endChange()
		fallthrough
	case l.Mark == '-', l.Mark == '\\' && len(d.added) == 0 && len(d.removed) > 0:
		d.removed = append(d.removed, l)
	case l.Mark == '+', l.Mark == '\\' && len(d.added) > 0:
		d.added = append(d.added, l)
	default:
		d.endChange()
		d.code(l, nil)
	}
}

// endChange writes the change that is open, in two halves.
func (d *drawer) endChange() {
	if len(d.removed)+len(d.added) == 0 {
		return
	}
	old, now := d.changedWords()
	d.Markup(`<span class="ch"><span class="o">`)
	for i, l := range d.removed {
		d.code(l, old[i])
	}
	d.Markup(`</span>`)
	if len(d.added) > 0 {
		d.Markup(`<span class="w">`)
		for i, l := range d.added {
			d.code(l, now[i])
		}
		d.Markup(`</span>`)
	}
	d.Markup(`</span>`)
	d.removed, d.added = d.removed[:0], d.added[:0]
}

// classes are those of lines by their mark.
var classes = map[byte]constant{'@': "g", ' ': "u", '-': "d", '+': "a"}

// code writes a line, with its numbers before and after as attributes, so that they are neither copied
// nor read as text, and with these words of it marked.
func (d *drawer) code(l gitpatch.Line, words []extent) {
	d.Markup(`<span class="`).Markup(cmp.Or(classes[l.Mark], "m")).Markup(`"`)
	if l.Before > 0 {
		d.Put(` data-o="{}"`, l.Before)
	}
	if l.After > 0 {
		d.Put(` data-n="{}"`, l.After)
	}
	d.Markup(">")
	at := 0
	for _, w := range words {
		d.Lines(string(l.Raw[at : 1+w.from])).Markup(`<b class="word">`).Lines(string(l.Raw[1+w.from : 1+w.to])).Markup("</b>")
		at = 1 + w.to
	}
	d.Lines(string(l.Raw[at:])).Markup("</span>")
}
