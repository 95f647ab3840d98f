package edits

import (
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

// IsBlocks reports whether a text has search and replace blocks.
func IsBlocks(raw []byte) bool {
	for line := range strings.Lines(string(raw)) {
		if isMark(line, '<', "SEARCH") {
			return true
		}
	}
	return false
}

// isMark reports whether a line is five to nine times a character, and a word.
func isMark(line string, c byte, word string) bool {
	line = strings.TrimRight(line, " \t\r\n")
	n := 0
	for n < len(line) && line[n] == c {
		n++
	}
	rest := line[n:]
	if word != "" {
		rest = strings.TrimPrefix(rest, " ")
	}
	return n >= 5 && n <= 9 && rest == word
}

// Blocks reads the search and replace blocks of a text; what is around them is left out.
func Blocks(raw []byte) ([]Edit, error) {
	var out []Edit
	var e Edit
	var old, replacement strings.Builder
	path, part := "", 0 // 1: within what is looked for; 2: within what takes its place
	number := 0
	for l := range strings.Lines(string(raw)) {
		number++
		switch {
		case part == 0 && isMark(l, '<', "SEARCH"):
			if path != "" {
				e.Path = path
			}
			if e.Path == "" {
				return nil, &patch.Error{Line: number, Message: "no path stands above the block"}
			}
			e.Line, e.Lines, part = number, true, 1
			old.Reset()
			replacement.Reset()
		case part == 1 && isMark(l, '=', ""):
			part = 2
		case part == 2 && isMark(l, '>', "REPLACE"):
			e.Old, e.New = old.String(), replacement.String()
			out, path, part = append(out, e), "", 0
		case part > 0 && (isMark(l, '<', "SEARCH") || isMark(l, '>', "REPLACE") || part == 2 && isMark(l, '=', "")):
			return nil, &patch.Error{Line: number, Path: e.Path, Message: "a mark that does not belong here; the block began in line " + strconv.Itoa(e.Line)}
		case part == 1:
			old.WriteString(l)
		case part == 2:
			replacement.WriteString(l)
		default:
			if named := name(l); named != "" {
				path = named
			}
		}
	}
	switch {
	case part > 0:
		return nil, &patch.Error{Line: e.Line, Path: e.Path, Message: "the block does not end"}
	case len(out) == 0:
		return nil, &patch.Error{Message: "no line is <<<<<<< SEARCH"}
	}
	return out, nil
}

// name is the path that a line above a block has, "" for an empty line or a fence.
func name(line string) string {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
		return ""
	}
	line = strings.TrimSpace(strings.TrimLeft(line, "#"))
	line = strings.TrimSuffix(strings.Trim(line, "*`"), ":")
	return strings.Trim(line, "*`")
}
