package gitpatch

import (
	"errors"
	"strconv"
	"strings"
)

var errQuoted = errors.New("malformed quoted name")

// The characters that Git escapes with a letter, and the letters.
const escaped, escapes = "\a\b\t\n\v\f\r\"\\", `abtnvfr"\`

// cQuote is Git's quote_c_style (quote.c): a name with a control character, a
// double quote or a backslash, and with core.quotePath one with a byte above
// 127, stands in double quotes, its bytes escaped by letter or in octal.
func cQuote(name string, nonASCII bool) string {
	needs := func(c byte) bool {
		return c < 0x20 || c == 0x7F || c == '"' || c == '\\' || c >= 0x80 && nonASCII
	}
	plain := true
	for i := range len(name) {
		plain = plain && !needs(name[i])
	}
	if plain {
		return name
	}
	b := []byte{'"'}
	for i := range len(name) {
		c := name[i]
		switch at := strings.IndexByte(escaped, c); {
		case at >= 0:
			b = append(b, '\\', escapes[at])
		case needs(c):
			b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// quotedLen is the length of the C-quoted name that s begins with, up to its
// closing quote; all of s where that is missing.
func quotedLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// Unquote reads a name as it stands in a header, C-quoted or plain.
func Unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	if quotedLen(s) != len(s) || len(s) < 2 || s[len(s)-1] != '"' {
		return "", errQuoted
	}
	body := s[1 : len(s)-1]
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			b.WriteByte(body[i])
			continue
		}
		c, size, err := unescape(body[i+1:])
		if err != nil {
			return "", err
		}
		b.WriteByte(c)
		i += size
	}
	return b.String(), nil
}

func unescape(s string) (c byte, size int, err error) {
	if s != "" {
		if i := strings.IndexByte(escapes, s[0]); i >= 0 {
			return escaped[i], 1, nil
		}
	}
	if len(s) >= 3 {
		if n, err := strconv.ParseUint(s[:3], 8, 8); err == nil {
			return byte(n), 3, nil
		}
	}
	return 0, 0, errQuoted
}
