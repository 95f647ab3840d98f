package report

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A hidden character is one that does not show, in lines that a diff adds.
type hidden struct {
	file  int    // the diff's, counted from 0
	shown string // as an escape
	lines []int  // of the file after the change
}

// maxHiddenLines is how many lines of one character are named.
const maxHiddenLines = 5

// hiddenIn finds what does not show in the lines that canonical bytes add
// (T14), once for each file and character.
func hiddenIn(diff []byte) []hidden {
	found := finder{known: map[string]int{}}
	file, at, inHunk := -1, 0, false
	for line := range bytes.Lines(diff) {
		switch {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			file, inHunk = file+1, false
		case bytes.HasPrefix(line, []byte("@@ ")):
			at, inHunk = hunkStart(line), true
		case inHunk && line[0] == '+':
			found.line(file, at, string(bytes.TrimSuffix(line[1:], []byte("\n"))))
			at++
		case inHunk && line[0] == ' ':
			at++
		}
	}
	return found.list
}

// hunkStart is the first line, after the change, of "@@ -a,b +c,d @@".
func hunkStart(line []byte) int {
	_, after, _ := strings.Cut(string(line), " +")
	number, _, _ := strings.Cut(after, " ")
	number, _, _ = strings.Cut(number, ",")
	n, _ := strconv.Atoi(number)
	return n
}

// A finder gathers hidden characters in the order in which they appear.
type finder struct {
	list  []hidden
	known map[string]int // by file and character: where in list
}

func (f *finder) line(file, at int, text string) {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if v := visible(r, text[:size]); v != text[:size] && r != '\t' {
			f.add(hidden{file, v, []int{at}})
		}
		text = text[size:]
	}
}

func (f *finder) add(h hidden) {
	key := fmt.Sprint(h.file, h.shown)
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
	var lines []string
	for _, n := range h.lines[:min(len(h.lines), maxHiddenLines)] {
		lines = append(lines, strconv.Itoa(n))
	}
	if more := len(h.lines) - maxHiddenLines; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	noun := "line"
	if len(h.lines) > 1 {
		noun = "lines"
	}
	return fmt.Sprintf("- %s in %s, %s %s\n", code(h.shown), where, noun, strings.Join(lines, ", "))
}
