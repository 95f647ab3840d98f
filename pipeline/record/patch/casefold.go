package patch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FoldName maps a name to what file systems compare that ignore case and Unicode normalisation: APFS, HFS+, NTFS, ext4 and
// F2FS with casefold. It returns what all names have in common that such a file system takes for one: their full case
// folding (the Unicode Standard, 3.13, toCasefold of canonical decompositions), composed. It is idempotent.
func FoldName(name string) string {
	if isASCII(name) {
		return strings.ToLower(name)
	}
	var b strings.Builder
	for _, r := range norm.NFD.String(name) {
		if full, ok := longer[r]; ok {
			b.WriteString(full)
		} else {
			b.WriteRune(simple(r))
		}
	}
	return norm.NFC.String(b.String())
}

// simple is the folding of a character to one (status C of CaseFolding.txt).
func simple(r rune) rune {
	upper := unicode.ToUpper(r)
	switch {
	case r == 'ı':
		return r // only in Turkish is it an i
	case unicode.Is(unicode.Cherokee, r):
		return upper // it had capitals first
	}
	return unicode.ToLower(upper)
}

// longer are the foldings to several characters (status F of CaseFolding.txt) of those
// that have no canonical decomposition.
var longer = map[rune]string{
	'ß': "ss", 'ẞ': "ss", 'ŉ': "ʼn", 'և': "եւ", 'ẚ': "aʾ",
	'ﬀ': "ff", 'ﬁ': "fi", 'ﬂ': "fl", 'ﬃ': "ffi", 'ﬄ': "ffl", 'ﬅ': "st", 'ﬆ': "st",
	'ﬓ': "մն", 'ﬔ': "մե", 'ﬕ': "մի", 'ﬖ': "վն", 'ﬗ': "մխ",
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
