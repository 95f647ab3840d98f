package report

import (
	"fmt"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/difflook"
	"github.com/countersign-dev/countersign/report/view"
)

// An escapedPart has the lines of one side of a file that a diff shows with escapes.
type escapedPart struct {
	file    int // the diff's, counted from 0
	removed bool
	lines   []int // of the file after the change, or before it where they are removed
}

// escapedIn finds where canonical bytes are shown with escapes (T14, T71): for characters that do not show in
// lines that are added, and for bytes that are not UTF-8 in lines that are added or removed. Without a word, a change from such a
// byte to the text of its escape would look like none.
func escapedIn(diff []byte) (parts []escapedPart) {
	for l := range difflook.Lines(diff) {
		removed, text := l.Mark == '-', string(l.Text)
		if l.Mark != '+' && !removed || removed && utf8.ValidString(text) || (Style{}).reveal(text) == text {
			continue
		}
		i := len(parts) - 1
		for i >= 0 && parts[i].file == l.File && parts[i].removed != removed {
			i--
		}
		if i < 0 || parts[i].file != l.File {
			i, parts = len(parts), append(parts, escapedPart{file: l.File, removed: removed})
		}
		parts[i].lines = append(parts[i].lines, max(l.After, l.Before))
	}
	return parts
}

func (e escapedPart) row(files []File) string {
	where := fmt.Sprintf("file %d", e.file+1)
	if e.file >= 0 && e.file < len(files) {
		where = name(files[e.file].Path)
	}
	return fmt.Sprintf("- %s, %s%s\n", where, lineNumbers(e.lines), map[bool]string{true: " of what is removed"}[e.removed])
}

// maxHiddenLines is how many lines are named.
const maxHiddenLines = 5

// lineNumbers is "line 3", or "lines 1, 2, 3, 4, 5 and 7 more".
func lineNumbers(lines []int) string { return view.Lines(lines, 0, maxHiddenLines) }
