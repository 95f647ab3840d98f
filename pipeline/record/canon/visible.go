package canon

import (
	_ "embed" // for the table
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Visible reports whether a reader sees a character for what it is: it prints,
// and it is none of those that print nothing (Hangul fillers, variation
// selectors, the blank Braille pattern, Khitan and Egyptian fillers, the musical null notehead, the object
// replacement), nor a space that is not U+0020. The record's rules hold texts to it
// (ledger.Visible), so what it says never changes: a character that a Unicode after 15.0.0 adds is none.
func Visible(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r < 0x7f
	}
	return unicode.Is(seen(), r)
}

// table has these characters, as Unicode 15.0.0 has them: of each line, how many to pass over, and how many then are
// seen, in hex. It is kept here because programs that other versions of Go built must say the same. TestVisible says how
// it was made.
//
//go:embed seen.txt
var table string

var seen = sync.OnceValue(func() *unicode.RangeTable {
	var all unicode.RangeTable
	next := uint32(0)
	for line := range strings.Lines(table) {
		over, many, _ := strings.Cut(strings.TrimSpace(line), " ")
		first := next + hexNumber(over)
		next = first + hexNumber(many)
		all.R32 = append(all.R32, unicode.Range32{Lo: first, Hi: next - 1, Stride: 1})
	}
	return &all
})

func hexNumber(hex string) uint32 {
	n, err := strconv.ParseUint(hex, 16, 21)
	if err != nil {
		panic("canon: seen.txt: " + err.Error())
	}
	return uint32(n)
}
