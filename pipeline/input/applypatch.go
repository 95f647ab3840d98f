package input

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// An ApplyPatch is what one call of Codex's apply_patch tool asks for, in order. It gives the bytes
// that the tool gives (github.com/openai/codex, codex-rs/apply-patch, as of 0.169).
//
// # Format
//
//	*** Begin Patch
//	*** Add File: notes/new.txt
//	+hello
//	*** Delete File: old.txt
//	*** Update File: greet.go
//	*** Move to: cmd/greet.go
//	@@ func main() {
//	 	name := "world"
//	-	greet(name)
//	+	greet(name, 1)
//	*** End of File
//	*** End Patch
//
// A chunk of an update begins with "@@", alone or with a line of the file that it comes
// after; the first may lack it. Its lines are context (a space, or nothing at all where
// the line is empty), gone (-) or new (+), and are looked for after the chunk before: as
// they are, else without white space behind them, else without any around them, else with
// typographic quotes, dashes and spaces taken for plain ones. "*** End of File" says that
// they are the file's last. A chunk of new lines alone goes to the end of the file. The
// tool's text may be in a shell's here-document (<<'EOF').
//
// Where the tool takes the first of several places, this is an error with all of them:
// nobody can say which one was meant. So is a file that is moved onto itself, which the
// tool deletes.
type ApplyPatch struct{ files []patchFile }

// A patchFile is what a patch does to one: to is where it is moved, "" for nowhere.
type patchFile struct {
	does     action
	line     int
	path, to string
	content  strings.Builder // of a new one
	chunks   []chunk
}

type action int

const (
	adds action = iota
	deletes
	updates
)

// A chunk is a run of lines of an update. after is the line that it comes after.
type chunk struct {
	line  int
	after *string
	lines []line
	end   bool // they are the file's last
}

type line struct {
	op   byte // ' ', '-' or '+'
	text string
}

const (
	begin = "*** Begin Patch"
	end   = "*** End Patch"
)

// IsApplyPatch reports whether a text looks like a patch of the tool.
func IsApplyPatch(raw []byte) bool {
	lines, _ := body(raw)
	return len(lines) > 0 && strings.TrimSpace(lines[0]) == begin
}

// ParseApplyPatch reads a patch. What is wrong with it is a *patch.Error with its line.
func ParseApplyPatch(raw []byte) (*ApplyPatch, error) {
	if !utf8.Valid(raw) {
		return nil, &patch.Error{Message: "the patch is not UTF-8"}
	}
	lines, first := body(raw)
	if len(lines) < 2 || strings.TrimSpace(lines[0]) != begin {
		return nil, &patch.Error{Line: first, Message: "the first line is not \"" + begin + "\""}
	}
	last := len(lines) - 1
	if strings.TrimSpace(lines[last]) != end {
		return nil, &patch.Error{Line: first + last, Message: "the last line is not \"" + end + "\""}
	}
	p := &patchReader{}
	for i, text := range lines[1:last] {
		if err := p.read(first+1+i, text); err != nil {
			return nil, err
		}
	}
	if err := p.whole(); err != nil {
		return nil, err
	}
	if len(p.files) == 0 {
		return nil, &patch.Error{Line: first, Message: "the patch names no file"}
	}
	out := &ApplyPatch{}
	for _, f := range p.files {
		out.files = append(out.files, *f)
	}
	return out, nil
}

// shell is how a shell gives the tool a patch: its name, and a here-document.
var shell = canon.Regexp(`^(?:apply_?patch\s*)?<<-?\s*(['"]?)([A-Za-z_]+)(['"]?)$`)

// body returns a patch's lines, without the white space around it and a here-document, and
// the number of the first.
func body(raw []byte) (lines []string, first int) {
	text := strings.TrimLeftFunc(string(raw), isSpace)
	first = 1 + strings.Count(string(raw[:len(raw)-len(text)]), "\n")
	for l := range strings.Lines(strings.TrimRightFunc(text, isSpace)) {
		lines = append(lines, strings.TrimRight(strings.TrimSuffix(l, "\n"), "\r"))
	}
	if len(lines) >= 4 {
		if m := shell().FindStringSubmatch(lines[0]); m != nil && (m[1] == m[3] && lines[len(lines)-1] == m[2] || m[2] == "EOF" && strings.HasSuffix(lines[len(lines)-1], "EOF")) {
			lines, first = lines[1:len(lines)-1], first+1
		}
	}
	return lines, first
}

// maxFiles is how many files one patch may name: each is gone through by itself.
const maxFiles = 1000

// A patchReader reads the lines between the first and the last.
type patchReader struct{ files []*patchFile }

func (r *patchReader) read(number int, text string) error {
	trimmed := strings.TrimSpace(text)
	for _, marker := range []struct {
		does action
		text string
	}{{adds, "*** Add File: "}, {deletes, "*** Delete File: "}, {updates, "*** Update File: "}} {
		if path, is := strings.CutPrefix(trimmed, marker.text); is {
			err := r.whole()
			if err == nil && len(r.files) == maxFiles {
				err = &patch.Error{Line: number, Message: fmt.Sprintf("a patch names at most %d files", maxFiles)}
			}
			r.files = append(r.files, &patchFile{does: marker.does, line: number, path: path})
			return err
		}
	}
	if len(r.files) == 0 {
		if number == 2 && strings.HasPrefix(trimmed, "*** Environment ID: ") {
			return nil // where the tool was to run
		}
		return &patch.Error{Line: number, Message: "expected \"*** Add File: \", \"*** Delete File: \" or \"*** Update File: \" and a path"}
	}
	f := r.files[len(r.files)-1]
	switch {
	case f.does == adds && strings.HasPrefix(text, "+"):
		f.content.WriteString(text[1:] + "\n")
		return nil
	case f.does == updates:
		return f.update(number, text)
	}
	return &patch.Error{Line: number, Path: f.path, Message: fmt.Sprintf("unexpected line %+q", clip(text))}
}

// update reads a line of an update.
func (f *patchFile) update(number int, text string) error {
	trimmed := strings.TrimSpace(text)
	if to, is := strings.CutPrefix(trimmed, "*** Move to: "); is && f.to == "" && len(f.chunks) == 0 {
		f.to = to
		return nil
	}
	after, named := strings.CutPrefix(trimmed, "@@ ")
	switch {
	case named:
		f.chunks = append(f.chunks, chunk{line: number, after: &after})
		return nil
	case trimmed == "@@":
		f.chunks = append(f.chunks, chunk{line: number})
		return nil
	case len(f.chunks) == 0:
		f.chunks = append(f.chunks, chunk{line: number})
	}
	c := &f.chunks[len(f.chunks)-1]
	switch {
	case c.end && trimmed == "":
		return nil
	case c.end:
		return &patch.Error{Line: number, Path: f.path, Message: "after \"*** End of File\" comes \"@@\" or another file"}
	case trimmed == "*** End of File" && len(c.lines) > 0:
		c.end = true
		return nil
	case text == "":
		c.lines = append(c.lines, line{op: ' '})
		return nil
	case strings.Contains(" +-", text[:1]):
		c.lines = append(c.lines, line{op: text[0], text: text[1:]})
		return nil
	}
	return &patch.Error{Line: number, Path: f.path, Message: fmt.Sprintf("%+q begins with none of: a space (context), + (new), - (gone)", clip(text))}
}

// whole reports what the last file lacks.
func (r *patchReader) whole() error {
	if len(r.files) == 0 {
		return nil
	}
	f := r.files[len(r.files)-1]
	if f.does != updates {
		return nil
	}
	if len(f.chunks) == 0 {
		return &patch.Error{Line: f.line, Path: f.path, Message: "the update has no lines"}
	}
	for _, c := range f.chunks {
		if len(c.lines) == 0 {
			return &patch.Error{Line: c.line, Path: f.path, Message: "the chunk has no lines"}
		}
	}
	return nil
}
