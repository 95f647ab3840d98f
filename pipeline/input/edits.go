package input

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// An Edit puts New in the place of Old in a file.
type Edit struct {
	Path, Old, New string
	All            bool // wherever it is
	Whole          bool // New is the whole file
	Lines          bool // Old is lines, not just any text
	Line           int  // in what was read, 0 for none
	number         int  // of a call, from 1
}

// fail is an error about an edit.
func (e Edit) fail(format string, args ...any) *patch.Error {
	text := fmt.Sprintf(format, args...)
	if e.number > 0 {
		text = fmt.Sprintf("edit %d: %s", e.number, text)
	}
	return &patch.Error{Line: e.Line, Path: e.Path, Message: text}
}

// What one change may have: edits, of which each goes through its file by itself, places,
// bytes that one file has after an edit, and bytes that all edits write together.
const (
	maxEdits  = 1000
	maxPlaces = 1 << 20 // that one edit changes
	maxFile   = 64 << 20
	maxMade   = 1 << 30
)

// resolveEdits makes edits to a base, each to what those before it left.
func resolveEdits(base fs.FS, all []Edit) (patch.Patchset, error) {
	if len(all) > maxEdits {
		return patch.Patchset{}, &patch.Error{Message: fmt.Sprintf("a change has at most %d edits, not %d", maxEdits, len(all))}
	}
	after := map[string]*patch.File{}
	made := 0
	for _, e := range all {
		if err := patch.CheckPath(e.Path); err != nil {
			return patch.Patchset{}, e.fail("%s", message(err))
		}
		there, changed := after[e.Path]
		if !changed {
			var err error
			if there, err = patch.Lookup(base, e.Path); err != nil {
				return patch.Patchset{}, e.fail("%s", message(err))
			}
		}
		mode := patch.Regular
		if there != nil {
			mode = there.Mode
		}
		data, err := e.make(there)
		if err != nil {
			return patch.Patchset{}, err
		}
		if made += len(data); made > maxMade {
			return patch.Patchset{}, e.fail("the edits make too much content; give them one at a time")
		}
		after[e.Path] = &patch.File{Mode: mode, Data: data}
	}
	return patch.NewTree(base).Between(after)
}

// message is what an error of package patch says, without its path.
func message(err error) string {
	if e, is := err.(*patch.Error); is { //nolint:errorlint // they are not wrapped
		return e.Message
	}
	return err.Error()
}

// make returns a file's bytes after an edit.
func (e Edit) make(there *patch.File) ([]byte, error) {
	switch {
	case there != nil && len(there.Data) > 0 && e.Whole && e.New == "":
		return nil, e.fail("has no content, which would empty the file: a patch can delete or empty it").With("propose what is on disk with --worktree, or delete the file in a patch")
	case there != nil && (e.Whole || e.Old == "" && len(there.Data) == 0):
		return []byte(endAs(string(there.Data), e.New)[0]), nil
	case e.Whole, e.Old == "" && there == nil:
		return []byte(e.New), nil
	case e.Old == "":
		return nil, e.fail("looks for no text, as for a new file, and the file is there")
	case there == nil:
		return nil, e.fail("does not exist")
	case e.Old == e.New: // models say what stays, too
		return there.Data, nil
	}
	text := string(there.Data)
	texts := endAs(text, e.Old, e.New)
	old, replacement := texts[0], texts[1]
	added := e.Lines && text != "" && !strings.HasSuffix(text, "\n") // the last line has no end
	if added {
		text += lineEnd(old)
	}
	at := e.places(text, old)
	switch {
	case len(at) == 0:
		return nil, e.fail("the text to replace is not there: it begins with %+q", first(e.Old)).With(patch.ReadHead)
	case len(at) > maxPlaces:
		return nil, e.fail("the text to replace is at more than %d places", maxPlaces)
	case len(at) > 1 && !e.All:
		return nil, e.fail("the text to replace is at %s: give more of what is around it", lineNumbers(text, at)).With(patch.SayPlace)
	}
	if len(replacement) > 0 && len(at) > maxFile/len(replacement) || len(text)+len(at)*len(replacement) > maxFile {
		return nil, e.fail("makes more than %d bytes of the file", maxFile)
	}
	var out strings.Builder
	from := 0
	for _, i := range at {
		out.WriteString(text[from:i] + replacement)
		from = i + len(old)
	}
	out.WriteString(text[from:])
	if added && from < len(text) { // the last line stayed, so it still has no end
		return []byte(strings.TrimSuffix(out.String(), lineEnd(old))), nil
	}
	return []byte(out.String()), nil
}

// lineEnd is how a text's last line ends.
func lineEnd(text string) string {
	if strings.HasSuffix(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// places are where a text is; where all are to be replaced, without those that overlap one before.
func (e Edit) places(text, old string) (at []int) {
	for from := 0; ; {
		i := strings.Index(text[from:], old)
		if i < 0 {
			return at
		}
		i += from
		if e.Lines && i > 0 && text[i-1] != '\n' {
			from = i + 1
			continue
		}
		at = append(at, i)
		switch {
		case e.All && len(at) <= maxPlaces:
			from = i + len(old)
		case e.All, len(at) > mostNamed: // that it is not once is known; a few more are told of
			return at
		default:
			from = i + 1
		}
	}
}

const mostNamed = 10

// endAs returns texts with the line ends of a file, where all of its lines end in one way
// and all of theirs in the other: an agent may see the file as it was checked out.
func endAs(file string, texts ...string) []string {
	has, lacks := "\n", "\r\n"
	if onlyCRLF(file) {
		has, lacks = lacks, has
	} else if strings.Contains(file, "\r") || !strings.Contains(file, "\n") {
		return texts
	}
	for _, text := range texts {
		if lacks == "\n" && strings.Contains(text, "\r") || lacks == "\r\n" && strings.ContainsAny(text, "\r\n") && !onlyCRLF(text) {
			return texts
		}
	}
	var out []string
	for _, text := range texts {
		out = append(out, strings.ReplaceAll(text, lacks, has))
	}
	return out
}

func onlyCRLF(text string) bool {
	n := strings.Count(text, "\r\n")
	return n > 0 && n == strings.Count(text, "\n") && n == strings.Count(text, "\r")
}

func first(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), "\n")
	return clip(line)
}

// lineNumbers are the numbers of places' lines, in words.
func lineNumbers(text string, at []int) string {
	var numbers []int
	for _, i := range at[:min(mostNamed, len(at))] {
		numbers = append(numbers, 1+strings.Count(text[:i], "\n"))
	}
	told := strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Compact(numbers)), " ", ", "), "[]")
	if len(at) > mostNamed {
		told += " and others"
	}
	return "several places, lines " + told
}
