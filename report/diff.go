package report

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// Diff shows canonical bytes to a person: coloured by line, and with every
// character that does not print shown as an escape, so that nothing in the
// patch can move the cursor, hide or reorder text (T14). It is for eyes; the
// bytes themselves are what is approved.
func Diff(diff []byte, s Style) string {
	var b strings.Builder
	inHunk := false
	for line := range bytes.Lines(diff) {
		text := strings.TrimSuffix(string(line), "\n")
		switch {
		case strings.HasPrefix(text, "diff --git "):
			inHunk = false
		case strings.HasPrefix(text, "@@ "):
			inHunk = true
		}
		b.WriteString(s.diffLine(text, inHunk))
		b.WriteByte('\n')
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
	if strings.IndexFunc(text, func(r rune) bool { return !ledger.Visible(r) && r != '\t' }) < 0 {
		return text
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
