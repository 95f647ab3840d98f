package secret

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A role says what a line of a diff is, and with it which part of the line may
// be replaced.
type role uint8

const (
	fixed   role = iota // ids, modes, counts: nothing may be replaced
	heading             // names, and text that no diff has
	context             // in a hunk
	added               // in a hunk
	removed             // in a hunk
	payload             // of a binary section
	beside              // not in the diff: content that Patch searches with it
)

// A diffLine is one line; [from, to) is what may be replaced.
type diffLine struct {
	from, to int32
	file     int32
	hunk     int32
	was, is  int32 // its number in the file before and after, from 1, in a hunk
	role     role
}

// A diffFile is one file's part of a diff.
type diffFile struct {
	path  string
	fresh bool // the name is new: an addition or a rename
}

// A diffReader reads a diff line by line, and takes anything: what is not as
// it should be counts as heading, which may be replaced whole.
type diffReader struct {
	text     []byte
	lines    []diffLine
	files    []diffFile
	sections []section
	old, new int // lines of the hunk still to come
	was, is  int // numbers of the next lines
	hunk     int
	binary   bool // within a binary patch
	body     bool // within a section of it
}

// A section is the payload of a binary section.
type section struct {
	from, to int
	file     int32
	literal  bool
	size     int
}

func readDiff(text []byte) *diffReader {
	r := &diffReader{text: text, files: []diffFile{{}}}
	for at := 0; at < len(text); {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
		}
		r.line(at, end)
		at = end + 1
	}
	return r
}

func (r *diffReader) line(at, end int) {
	switch {
	case r.body:
		r.payload(at, end)
	case (r.old > 0 || r.new > 0) && r.inHunk(at, end):
	default:
		r.old, r.new = 0, 0
		r.header(at, end)
	}
}

func (r *diffReader) add(from, to int, role role) {
	r.lines = append(r.lines, diffLine{
		int32(from), int32(to), int32(len(r.files) - 1), int32(r.hunk), int32(r.was), int32(r.is), role,
	})
}

// inHunk takes a line of a hunk; false if it is none.
func (r *diffReader) inHunk(at, end int) bool {
	first := byte(' ') // an empty line has lost its prefix
	if at < end {
		first, at = r.text[at], at+1
	}
	switch first {
	case ' ':
		r.add(at, end, context)
		r.old, r.new, r.was, r.is = r.old-1, r.new-1, r.was+1, r.is+1
	case '+':
		r.add(at, end, added)
		r.new, r.is = r.new-1, r.is+1
	case '-':
		r.add(at, end, removed)
		r.old, r.was = r.old-1, r.was+1
	case '\\':
		return r.fixed(string(r.text[at-1:end]), at-1)
	default:
		return false
	}
	return true
}

// fixedLine is a header without text of anybody's choice.
var fixedLine = canon.Regexp(`^(?:index [0-9a-f]{7,64}\.\.[0-9a-f]{7,64}(?: [0-7]{6})?` +
	`|(?:new file mode|deleted file mode|old mode|new mode) [0-7]{6}` +
	`|(?:dis)?similarity index [0-9]{1,3}%|\\ No newline at end of file|GIT binary patch|)$`)

func (r *diffReader) fixed(line string, at int) bool {
	if !fixedLine().MatchString(line) {
		return false
	}
	r.add(at, at, fixed)
	return true
}

// nameLines begin the header lines that end in a name.
var nameLines = []string{"diff --git ", "--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to "}

func (r *diffReader) header(at, end int) {
	line := string(r.text[at:min(end, at+4096)])
	for _, prefix := range nameLines {
		if strings.HasPrefix(line, prefix) {
			r.name(prefix, at+len(prefix), end)
			return
		}
	}
	var m []string
	if strings.HasPrefix(line, "@@ ") {
		m = hunkLine().FindStringSubmatch(line)
	}
	if m != nil {
		r.was, r.old, r.is, r.new = count(m[1]), count(m[2]), count(m[3]), count(m[4])
		r.hunk++
		r.add(at+len(m[0]), end, heading)
		return
	}
	if r.binary {
		m = sectionLine().FindStringSubmatch(line)
	}
	if m != nil {
		r.add(at, at, fixed)
		r.body = true
		r.sections = append(r.sections, section{-1, -1, int32(len(r.files) - 1), m[1] == "literal", count(m[2])})
		return
	}
	if end-at >= 200 || !r.fixed(line, at) {
		r.add(at, end, heading)
		return
	}
	r.binary = r.binary || line == "GIT binary patch"
	last := &r.files[len(r.files)-1]
	last.fresh = last.fresh || strings.HasPrefix(line, "new file mode")
}

var (
	hunkLine    = canon.Regexp(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)
	sectionLine = canon.Regexp(`^(literal|delta) (\d{1,10})$`)
)

func count(s string) int {
	if s == "" {
		return 1
	}
	n, _ := strconv.Atoi(s) // nine digits at most
	return n
}

// payload takes a line of a binary section, which an empty line ends.
func (r *diffReader) payload(at, end int) {
	if at == end {
		r.body = false
		r.add(at, at, fixed)
		return
	}
	s := &r.sections[len(r.sections)-1]
	if s.from < 0 {
		s.from = at
		r.add(at, end, payload)
	}
	s.to = end
	r.lines[len(r.lines)-1].to = int32(end)
}

// name takes a header line with a name, and notes the path after the patch.
func (r *diffReader) name(prefix string, from, end int) {
	name := string(r.text[from:end])
	if prefix == "diff --git " {
		r.files, r.binary = append(r.files, diffFile{path: gitName(name)}), false
	}
	last := &r.files[len(r.files)-1]
	switch {
	case prefix == "+++ " && name != "/dev/null", prefix == "--- " && last.path == "":
		last.path = side(strings.TrimSuffix(name, "\t"))
	case prefix == "rename to ", prefix == "copy to ":
		last.path, last.fresh = unquoted(name), true
	}
	r.add(from, end, heading)
}

// gitName is the path in "a/path b/path", "" where the two differ.
func gitName(names string) string {
	half := len(names) / 2
	if len(names)%2 == 0 || names[half] != ' ' || side(names[:half]) != side(names[half+1:]) {
		return ""
	}
	return side(names[half+1:])
}

func side(name string) string {
	name = unquoted(name)
	return strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/")
}

func unquoted(name string) string {
	if !strings.HasPrefix(name, `"`) {
		return name
	}
	return strings.ReplaceAll(strings.Trim(name, `"`), `\"`, `"`)
}
