package html

import (
	"bytes"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// maxCompared bounds the patches whose difference is worked out, in bytes of both.
const maxCompared = 2 << 20

// A part is what a patch does to one file.
type part struct {
	name  string
	lines [][]byte // without the line of the blobs' ids
}

// A comparison is what changed between the proposal whose place this one took and this one: the difference of
// the two diffs, file by file.
type comparison struct {
	Before  []string // the id
	Instead string   // why they are not compared
	Files   []difference
	Same    []string // files that are changed just as before
}

// A difference shows two diffs of a file as one, in which the signs of the first column are what changed
// between the proposals.
type difference struct {
	Name, What string
	Lines      *Body
}

func (s *sheet) compare() *comparison {
	before := s.O.Earlier
	if before == nil {
		return nil
	}
	c := &comparison{Before: []string{before.ID}}
	switch {
	case before.PatchID == s.T.PatchID && s.T.PatchID != "":
		c.Instead = "Both propose the same bytes."
	case s.O.Redact:
		c.Instead = "The diffs are left out of these pages."
	case s.T.Patch == nil || before.Patch == nil:
		c.Instead = "A patch cannot be read, so they cannot be compared."
	case len(s.T.Patch)+len(before.Patch) > maxCompared:
		c.Instead = "They are too large to compare here."
	}
	if c.Instead != "" {
		return c
	}
	earlier := before.parts()
	for _, now := range s.T.parts() {
		i := slices.IndexFunc(earlier, func(p part) bool { return p.name == now.name })
		if i < 0 {
			c.Files = append(c.Files, difference{now.name, "is new in this proposal", between(nil, now.lines)})
			continue
		}
		if was := earlier[i].lines; slices.EqualFunc(was, now.lines, bytes.Equal) {
			c.Same = append(c.Same, now.name)
		} else {
			c.Files = append(c.Files, difference{now.name, "is changed otherwise than before", between(was, now.lines)})
		}
		earlier = slices.Delete(earlier, i, i+1)
	}
	for _, was := range earlier {
		c.Files = append(c.Files, difference{was.name, "is not changed any more", between(was.lines, nil)})
	}
	return c
}

// parts are the files of a patch.
func (t Transaction) parts() []part {
	var out []part
	for i, stat := range t.stats {
		p := part{name: "a file"}
		if i < len(t.facts.Files) {
			p.name = t.facts.Files[i].Path
		}
		for line := range bytes.Lines(stat.Diff) {
			if !bytes.HasPrefix(line, []byte("index ")) { // a line of a hunk begins with its mark
				p.lines = append(p.lines, line)
			}
		}
		out = append(out, p)
	}
	return out
}

func between(before, after [][]byte) *Body {
	b := new(Body)
	write := func(class constant, sign string, lines [][]byte) {
		for _, line := range lines {
			b.Markup("<span class=\"").Markup(class).Markup("\">").Lines(sign + strings.TrimSuffix(string(line), "\n") + "\n").Markup("</span>")
		}
	}
	for _, h := range patch.LineHunks(patch.DiffLines(before, after), len(before), len(after), 3) {
		b.Markup("<span class=\"g\">@@\n</span>")
		at := h.OldStart
		for _, e := range h.Edits {
			write("u", " ", before[at:e.OldStart])
			write("d", "-", before[e.OldStart:e.OldEnd])
			write("a", "+", after[e.NewStart:e.NewEnd])
			at = e.OldEnd
		}
		write("u", " ", before[at:h.OldStart+h.OldLines])
	}
	return b
}
