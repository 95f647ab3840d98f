package input

import (
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// IsBlocks reports whether a text has search and replace blocks.
func IsBlocks(raw []byte) bool {
	for line := range strings.Lines(string(raw)) {
		if isSearch(line) {
			return true
		}
	}
	return false
}

// isSearch and isReplace report whether a line begins or ends a block, as aider's or Cline's models write it.
func isSearch(line string) bool { return isMark(line, '<', "SEARCH") || isMark(line, '-', "SEARCH") }

func isReplace(line string) bool { return isMark(line, '>', "REPLACE") || isMark(line, '+', "REPLACE") }

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
	above := false      // lines that say where the block is
	path, part := "", 0 // 1: within what is looked for; 2: within what takes its place
	number := 0
	for l := range strings.Lines(string(raw)) {
		number++
		switch {
		case part == 0 && isSearch(l):
			if path != "" {
				e.Path = path
			}
			if e.Path == "" {
				return nil, &patch.Error{Line: number, Message: "no path stands above the block"}
			}
			e.Line, e.Lines, part, above = number, true, 1, false
			old.Reset()
			replacement.Reset()
		case part == 1 && old.Len() == 0 && rooLine().MatchString(l): // where it is, as Roo says it
			above = true
		case part == 1 && above && old.Len() == 0 && isMark(l, '-', ""):
			above = false
		case part == 1 && isMark(l, '=', ""):
			part = 2
		case part == 2 && isReplace(l):
			e.Old, e.New = old.String(), replacement.String()
			out, path, part = append(out, e), "", 0
		case part > 0 && (isSearch(l) || isReplace(l) || part == 2 && isMark(l, '=', "")):
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

// rooLine is a line that Roo's models write above what is looked for.
var rooLine = canon.Regexp(`^:(start_line|end_line): ?[0-9]+\s*$`)

// name is the path that a line above a block has, "" for an empty line, a fence or a tag.
func name(line string) string {
	line = strings.TrimSpace(line)
	if inner, is := strings.CutPrefix(line, "<path>"); is {
		line = strings.TrimSpace(strings.TrimSuffix(inner, "</path>"))
	} else if strings.HasPrefix(line, "<") && strings.HasSuffix(line, ">") {
		return ""
	}
	if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
		return ""
	}
	line = strings.TrimSpace(strings.TrimLeft(line, "#"))
	line = strings.TrimSuffix(strings.Trim(line, "*`"), ":")
	return strings.Trim(line, "*`")
}
