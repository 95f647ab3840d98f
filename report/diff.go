package report

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Diff shows canonical bytes to a person: coloured by line, and with every
// character that does not print, and every byte that is not UTF-8, shown as an
// escape, so that nothing in the patch can move the cursor, hide or reorder text
// (T14, T71). A note below it says where escapes stand, since a patch may also
// hold text that only looks like one. It is for eyes; the bytes themselves are
// what is approved.
func Diff(diff []byte, s Style) string {
	var b strings.Builder
	var escaped []int
	n, inHunk := 0, false
	for line := range bytes.Lines(diff) {
		n++
		text := strings.TrimSuffix(string(line), "\n")
		switch {
		case strings.HasPrefix(text, "diff --git "):
			inHunk = false
		case strings.HasPrefix(text, "@@ "):
			inHunk = true
		}
		if plain := (Style{}).reveal(text); plain != text && plain+"\r" != text {
			escaped = append(escaped, n)
		}
		b.WriteString(s.diffLine(text, inHunk))
		b.WriteByte('\n')
	}
	if len(escaped) > 0 {
		b.WriteString(s.paint(yellow, "Escapes such as \\x1b stand for what does not show in "+lineNumbers(escaped)+" of this diff.") + "\n")
	}
	return b.String()
}

func (s Style) diffLine(text string, inHunk bool) string {
	shown := s.reveal(text)
	switch {
	case strings.HasPrefix(text, "@@ "):
		return s.paint(cyan, shown)
	case !inHunk:
		return s.paint(bold, shown)
	case strings.HasPrefix(text, "+"):
		return s.paint(green, shown)
	case strings.HasPrefix(text, "-"):
		return s.paint(red, shown)
	}
	return shown
}

// reveal is Clean for a line of a diff: tabs stay, and escapes stand out. The
// carriage return that ends an unchanged line is left out; on a changed one it
// may be all that changed.
func (s Style) reveal(text string) string {
	if strings.HasPrefix(text, " ") {
		text = strings.TrimSuffix(text, "\r")
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if v := visible(r, text[:size]); v == text[:size] || r == '\t' {
			b.WriteString(text[:size])
		} else {
			b.WriteString(s.paint(invert, v))
		}
		text = text[size:]
	}
	return b.String()
}
