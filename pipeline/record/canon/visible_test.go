package canon

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestVisible: the table is what Go's own say where they are of the same Unicode, and what is a character to see does not
// depend on the Go that built the program: whatever was not assigned then is an escape.
func TestVisible(t *testing.T) {
	blank := []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}
	const blankSigns = "\u2800\ufffc\U00016fe4\U00013441\U00013442\U0001d159"
	count, hash := 0, uint32(2166136261) // FNV-1a
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.Version == "15.0.0" {
			if want := unicode.IsPrint(r) && !unicode.In(r, blank...) && !strings.ContainsRune(blankSigns, r); Visible(r) != want {
				t.Fatalf("%U: %v", r, !want)
			}
		}
		if Visible(r) {
			count++
			for _, b := range utf8.AppendRune(nil, r) {
				hash = (hash ^ uint32(b)) * 16777619
			}
		}
	}
	if count != 148725 || hash != 0xe1a68b6a {
		t.Errorf("%d characters, %#x: what records may hold, and pages of a ledger show, is other text now", count, hash)
	}
}
