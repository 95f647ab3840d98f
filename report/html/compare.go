package html

import (
	"bytes"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/patch/linediff"
)

// maxCompared bounds the patches whose difference is worked out, in bytes of both.
const maxCompared = 2 << 20

// A part is what a patch does to one file.
type part struct {
	name  string
	lines [][]byte // without the line of the blobs' ids
}

// compare shows what changed between the proposal whose place this one took and this one: the difference of
// the two diffs, file by file.
func (s *sheet) compare() {
	before := s.o.Earlier
	if before == nil {
		return
	}
	s.Markup("<section>\n<h2 id=\"compare\">What changed since the earlier proposal</h2>\n")
	s.Put("<p>Compared with {}, which this one took the place of.</p>\n", s.transactions([]string{before.ID}))
	defer s.Markup("</section>\n")
	instead := ""
	switch {
	case before.PatchID == s.t.PatchID && s.t.PatchID != "":
		instead = "Both propose the same bytes."
	case s.o.Redact:
		instead = "The diffs are left out of these pages."
	case s.t.patch == nil || before.patch == nil:
		instead = "A patch cannot be read, so they cannot be compared."
	case len(s.t.patch)+len(before.patch) > maxCompared:
		instead = "They are too large to compare here."
	}
	if instead != "" {
		s.Put("<p>{}</p>\n", instead)
		return
	}
	earlier := before.parts()
	var same []string
	for _, now := range s.t.parts() {
		i := slices.IndexFunc(earlier, func(p part) bool { return p.name == now.name })
		if i < 0 {
			s.difference(now.name, "is new in this proposal", nil, now.lines)
			continue
		}
		was := earlier[i]
		earlier = slices.Delete(earlier, i, i+1)
		if slices.EqualFunc(was.lines, now.lines, bytes.Equal) {
			same = append(same, now.name)
			continue
		}
		s.difference(now.name, "is changed otherwise than before", was.lines, now.lines)
	}
	for _, was := range earlier {
		s.difference(was.name, "is not changed any more", was.lines, nil)
	}
	for _, name := range same {
		s.Put("<p>{} is changed just as before.</p>\n", Code(name))
	}
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

// difference shows two diffs of a file as one, in which the signs of the first column are what changed
// between the proposals.
func (s *sheet) difference(name, what string, before, after [][]byte) {
	s.Put("<details open class=\"file\"><summary><h3>{} {}</h3></summary>\n", name, what)
	s.Put("<pre class=\"diff bare\" tabindex=\"0\" role=\"region\" aria-label=\"Difference of the proposals in {}\"><code>", name)
	for _, h := range linediff.Hunks(linediff.Diff(before, after), len(before), len(after), 3) {
		s.Markup("<span class=\"g\">@@\n</span>")
		at := h.OldStart
		for _, e := range h.Edits {
			s.plainLines("u", " ", before[at:e.OldStart])
			s.plainLines("d", "-", before[e.OldStart:e.OldEnd])
			s.plainLines("a", "+", after[e.NewStart:e.NewEnd])
			at = e.OldEnd
		}
		s.plainLines("u", " ", before[at:h.OldStart+h.OldLines])
	}
	s.Markup("</code></pre>\n</details>\n")
}

func (s *sheet) plainLines(class constant, sign string, lines [][]byte) {
	for _, line := range lines {
		s.Markup("<span class=\"").Markup(class).Markup("\">").Lines(sign + strings.TrimSuffix(string(line), "\n") + "\n").Markup("</span>")
	}
}
