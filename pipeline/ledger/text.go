package ledger

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine makes foreign text safe in a line of ours: visible characters only,
// single spaces, at most limit characters.
func OneLine(s string, limit int) string {
	clean := strings.Map(func(r rune) rune {
		if Visible(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, s)
	runes := []rune(strings.Join(strings.Fields(clean), " "))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}

// EscapeBytes writes each byte that is not UTF-8 as an escape, such as \xe9, and
// leaves everything else as it is: JSON has no other way to show that there is
// one (T71).
func EscapeBytes(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// Visible reports whether a reader sees a character for what it is: it prints,
// and it is none of those that print nothing (Hangul fillers, variation
// selectors, the blank Braille pattern), nor a space that is not U+0020.
func Visible(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, blank...) && r != '\u2800'
}

// blank are letters and marks that show nothing, which unicode lets pass.
var blank = []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}
