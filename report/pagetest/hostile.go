package pagetest

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed texts.txt
var texts string

// HostileTexts are the texts. The last are of a megabyte each.
func HostileTexts() []string {
	var out []string
	for line := range strings.Lines(texts) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if text, err := strconv.Unquote(line); err == nil && line[0] == '"' {
			line = text
		}
		out = append(out, line)
	}
	const long = 1 << 20
	return append(out, strings.Repeat("<script>alert(1)</script>", long/25), strings.Repeat("a", long), strings.Repeat("\u202e\x1b", long/4))
}

// ShownRuns are the parts of a text that are ASCII and show, in order: wherever the text is
// shown, these are there, letter by letter. Of a long one it is the beginning.
func ShownRuns(text string) []string {
	var out []string
	for _, run := range strings.FieldsFunc(text[:min(len(text), 10_000)], func(r rune) bool { return r < ' ' || r > '~' }) {
		if run = strings.TrimSpace(run); run != "" {
			out = append(out, run)
		}
	}
	return out
}
