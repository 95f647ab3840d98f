package ledger

import (
	"strings"
	"unicode"
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

// Visible tells whether a reader sees a character for what it is: it prints,
// and it is none of those that print nothing (Hangul fillers, variation
// selectors, the blank Braille pattern), nor a space that is not U+0020.
func Visible(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, blank...) && r != '\u2800'
}

// blank are letters and marks that show nothing, which unicode lets pass.
var blank = []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}
