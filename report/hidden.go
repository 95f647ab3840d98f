package report

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/markdown"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// A hidden character is one that does not show, in lines that a diff adds, or a
// byte that is not UTF-8, in lines that it adds or removes: without a word, a
// change from that byte to the text of its escape would look like none.
type hidden struct {
	file    int    // the diff's, counted from 0
	shown   string // as an escape
	removed bool
	lines   []int // of the file after the change, or before it where they are removed
}

// maxHiddenLines is how many lines of one character are named.
const maxHiddenLines = 5

// hiddenIn finds what does not show in canonical bytes (T14, T71), once for each
// file, character and side.
func hiddenIn(diff []byte) []hidden {
	found := finder{known: map[string]int{}}
	for l := range patch.Lines(diff) {
		switch l.Mark {
		case '+':
			found.line(hidden{file: l.File, lines: []int{l.After}}, string(l.Text))
		case '-':
			found.line(hidden{file: l.File, lines: []int{l.Before}, removed: true}, string(l.Text))
		}
	}
	return found.list
}

// A finder gathers hidden characters in the order in which they appear.
type finder struct {
	list  []hidden
	known map[string]int // by file, character and side: where in list
}

func (f *finder) line(at hidden, text string) {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		v := markdown.Show(r, text[:size])
		isByte := r == utf8.RuneError && size == 1
		if v != text[:size] && r != '\t' && (isByte || !at.removed) {
			at.shown = v
			f.add(at)
		}
		text = text[size:]
	}
}

func (f *finder) add(h hidden) {
	key := fmt.Sprint(h.file, h.shown, h.removed)
	i, known := f.known[key]
	if !known {
		f.known[key] = len(f.list)
		f.list = append(f.list, h)
		return
	}
	if lines := f.list[i].lines; lines[len(lines)-1] != h.lines[0] {
		f.list[i].lines = append(lines, h.lines[0])
	}
}

// row is a hidden character in a list.
func (h hidden) row(files []File) string {
	where := fmt.Sprintf("file %d", h.file+1)
	if h.file >= 0 && h.file < len(files) {
		where = name(files[h.file].Path)
	}
	text := fmt.Sprintf("- %s in %s, %s", code(h.shown), where, lineNumbers(h.lines))
	if h.removed {
		text += " of what is removed"
	}
	return text + "\n"
}

// lineNumbers is "line 3", or "lines 1, 2, 3, 4, 5, and 7 more".
func lineNumbers(lines []int) string {
	var out []string
	for _, n := range lines[:min(len(lines), maxHiddenLines)] {
		out = append(out, strconv.Itoa(n))
	}
	if more := len(lines) - maxHiddenLines; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	noun := "line"
	if len(lines) > 1 {
		noun = "lines"
	}
	return noun + " " + strings.Join(out, ", ")
}
