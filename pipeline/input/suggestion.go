package input

import (
	"cmp"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// FormatSuggestion is the form of a change that is suggested in a review.
const FormatSuggestion = "suggestion"

// Suggestion reads the change that a review comment suggests (docs.github.com, "Commenting
// on a pull request"): the lines of its one fenced block that begins with ```suggestion
// take the place of the lines that the comment is on; none of them, where the block is
// empty. at is the tree of the commit that these are counted in.
//
// New lines end as the first one that they replace; a last line that has no end stays so.
func Suggestion(c forge.ReviewComment, at fs.FS, summary string) (Change, error) {
	if err := onLines(c); err != nil {
		return Change{}, err
	}
	lines, err := suggested(c.Body)
	if err != nil {
		return Change{}, err
	}
	by := "suggested by " + ledger.OneLine(c.Author.Login, 60) + " in a review"
	if summary != "" {
		by = summary + " (" + by + ")"
	}
	return Change{Kind: KindPatch, Format: FormatSuggestion, Summary: by, Raw: []byte(c.Body), Resolve: func(base fs.FS) (patch.Patchset, error) {
		if err := patch.CheckPath(c.Path); err != nil {
			return patch.Patchset{}, err
		}
		before, err := patch.Lookup(at, c.Path)
		if err != nil {
			return patch.Patchset{}, err
		}
		there, err := patch.Lookup(base, c.Path)
		switch {
		case err != nil:
			return patch.Patchset{}, err
		case before == nil:
			return patch.Patchset{}, &patch.Error{Path: c.Path, Message: fmt.Sprintf("is not there in %.12s, which the comment is on", c.Commit), Try: "check out the pull request's head"}
		case !there.Equal(before):
			return patch.Patchset{}, &patch.Error{Path: c.Path, Message: fmt.Sprintf("is another file than in %.12s, which the comment is on", c.Commit), Try: "check out the pull request's head"}
		}
		data, err := replaced(before.Data, cmp.Or(c.Start, c.Line), c.Line, lines)
		if err != nil {
			return patch.Patchset{}, &patch.Error{Path: c.Path, Message: err.Error()}
		}
		return patch.NewTree(base).Between(map[string]*patch.File{c.Path: {Mode: before.Mode, Data: data}})
	}}, nil
}

// onLines refuses a comment that is not on lines of the head as they are.
func onLines(c forge.ReviewComment) error {
	why := ""
	switch {
	case c.OnFile:
		why = "the comment is on a whole file, not on lines"
	case c.Line == 0:
		why = "the comment is outdated: its lines have changed since"
	case c.Side != "RIGHT", c.Start != 0 && c.StartSide != "RIGHT":
		why = "the comment is on lines of the base, which no change can be made to"
	case c.Line < 1, c.Start < 0, c.Start > c.Line:
		why = fmt.Sprintf("the comment is on the lines %d to %d", c.Start, c.Line)
	}
	if why == "" {
		return nil
	}
	return &patch.Error{Message: why}
}

// suggested are the lines of the one block of suggestion, without their ends.
func suggested(body string) ([]string, error) {
	all, open := blocks([]byte(body))
	var found []block
	for _, b := range all {
		if word, _, _ := strings.Cut(strings.ReplaceAll(b.info, "\t", " "), " "); word == FormatSuggestion {
			found = append(found, b)
		}
	}
	switch {
	case open > 0:
		return nil, &patch.Error{Line: open, Message: "the fenced block does not end"}
	case len(found) == 0:
		return nil, &patch.Error{Message: "the comment has no block that begins with ```suggestion"}
	case len(found) > 1:
		return nil, &patch.Error{Message: fmt.Sprintf("the comment has %d suggestions, at its lines %s, and only one can be meant", len(found), beginnings(found))}
	}
	var lines []string
	for line := range strings.Lines(string(found[0].text)) {
		lines = append(lines, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
	}
	return lines, nil
}

// replaced puts lines in the place of those from start to end.
func replaced(data []byte, start, end int, with []string) ([]byte, error) {
	lines := patch.Lines(data)
	if end > len(lines) {
		return nil, fmt.Errorf("has %d lines, and the comment is on line %d", len(lines), end)
	}
	style := "\n"
	if first := string(lines[start-1]); strings.HasSuffix(first, "\r\n") || !strings.HasSuffix(first, "\n") && strings.HasSuffix(string(lines[0]), "\r\n") {
		style = "\r\n"
	}
	var out []byte
	for _, line := range lines[:start-1] {
		out = append(out, line...)
	}
	for i, text := range with {
		out = append(out, text...)
		if i < len(with)-1 || strings.HasSuffix(string(lines[end-1]), "\n") {
			out = append(out, style...)
		}
	}
	for _, line := range lines[end:] {
		out = append(out, line...)
	}
	return out, nil
}

// A block is a fenced code block of Markdown: its lines, its info string, and the number
// of the line that begins it.
type block struct {
	text []byte
	info string
	line int
}

// blocks returns the fenced code blocks of a text (CommonMark 0.31.2, section 4.5), and the
// number of the line that begins one which does not end, 0 for none. A fence may be
// indented by any number of spaces, as it is in a list: its lines lose as many.
func blocks(raw []byte) (out []block, open int) {
	var b block
	var fence string
	indent, number := 0, 0
	for line := range strings.Lines(string(raw)) {
		number++
		text := strings.TrimRight(line, "\r\n")
		inner := strings.TrimLeft(text, " ")
		marks := inner[:len(inner)-len(strings.TrimLeft(inner, inner[:min(1, len(inner))]))]
		rest := strings.Trim(inner[len(marks):], " \t")
		switch {
		case open > 0 && len(marks) >= len(fence) && marks[0] == fence[0] && rest == "" && len(text)-len(inner) <= indent+3:
			out, open = append(out, b), 0
		case open > 0:
			lost := 0
			for lost < indent && lost < len(line) && line[lost] == ' ' {
				lost++
			}
			b.text = append(b.text, line[lost:]...)
		case len(marks) >= 3 && (marks[0] == '~' || marks[0] == '`' && !strings.Contains(rest, "`")):
			b, fence, indent, open = block{info: rest, line: number}, marks, len(text)-len(inner), number
		}
	}
	return out, open
}
