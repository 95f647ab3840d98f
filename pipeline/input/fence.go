package input

import "strings"

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
