package ledger

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// Plural is a count with its words.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

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

// Visible reports whether a reader sees a character for what it is.
func Visible(r rune) bool { return canon.Visible(r) }
