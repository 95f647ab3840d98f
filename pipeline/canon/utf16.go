package canon

import (
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Compare orders two strings by UTF-16 code unit, as RFC 8785 3.2.3 and
// ECMAScript do. It differs from byte order only where a character outside the
// Basic Multilingual Plane, or a lone surrogate, meets U+E000..U+FFFF.
func Compare(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if asciiAt(a, i) && asciiAt(b, i) {
		return strings.Compare(a[i:], b[i:])
	}
	return slices.Compare(units(a), units(b))
}

// asciiAt reports whether s ends at i or goes on with ASCII, so that nothing from
// there on changes how the bytes before are decoded.
func asciiAt(s string, i int) bool { return i == len(s) || s[i] < utf8.RuneSelf }

// units is the UTF-16 form of a string that may hold lone surrogates (WTF-8).
func units(s string) []uint16 {
	out := make([]uint16, 0, len(s))
	for i := 0; i < len(s); {
		if unit, ok := surrogateAt(s[i:]); ok {
			out = append(out, unit)
			i += 3
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		out = utf16.AppendRune(out, r)
		i += size
	}
	return out
}

// surrogateAt decodes the lone surrogate that s begins with, if it does:
// ED A0..BF 80..BF, which UTF-8 forbids and WTF-8 uses.
func surrogateAt(s string) (uint16, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | uint16(s[1]&0x3F)<<6 | uint16(s[2]&0x3F), true
}

// appendUnit appends a code point or a lone surrogate in WTF-8.
func appendUnit(b []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(b, 0xED, 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(b, r)
}
