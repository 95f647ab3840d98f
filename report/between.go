package report

import (
	"bytes"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/patch/linediff"
)

// Between shows in which lines two patches differ, as "git range-diff" does, but for where the lines are and of
// which files' contents: nobody who has read the old one has to read the rest again.
func Between(old, now []byte, s Style) string {
	lines := func(diff []byte) (out [][]byte) {
		for line := range bytes.Lines(diff) {
			if !bytes.HasPrefix(line, []byte("@@ ")) && !bytes.HasPrefix(line, []byte("index ")) {
				out = append(out, line)
			}
		}
		return out
	}
	a, b := lines(old), lines(now)
	var out strings.Builder
	edits := linediff.Diff(a, b)
	if len(edits) == 0 {
		return "The patch has the same lines as before, at other places.\n"
	}
	out.WriteString(s.paint(bold, "What is different in the patch, - before and + now:") + "\n")
	write := func(sign, colour string, lines [][]byte) {
		for _, line := range lines {
			out.WriteString(s.paint(colour, Clean(sign+" "+strings.TrimSuffix(string(line), "\n"))) + "\n")
		}
	}
	for _, e := range edits {
		write("-", red, a[e.OldStart:e.OldEnd])
		write("+", green, b[e.NewStart:e.NewEnd])
	}
	return out.String()
}
