package escape

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// What prose makes of links and of words that look like commits, as expressions that are too slow for tens of
// thousands of pages.
var (
	links        = regexp.MustCompile(`(?i)www|gh-`)
	alphanumeric = regexp.MustCompile(`[0-9A-Za-z]+`)
	hexadecimal  = regexp.MustCompile(`^[0-9A-Fa-f]{7,}$`)
)

func proseByExpressions(text string) string {
	var clean strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		clean.WriteString(Show(r, text[i:i+size]))
	}
	runes := []rune(links.ReplaceAllStringFunc(clean.String(), func(m string) string {
		word := strings.TrimSuffix(m, "-")
		return word + zeroWidth + m[len(word):]
	}))
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '$':
			b.WriteString("<span>$</span>")
		case r == '@' || r == '#', r == ':' && (i+1 == len(runes) || runes[i+1] != ' '):
			b.WriteString(string(r) + zeroWidth)
		case strings.ContainsRune("\\`*_{}[]()!|>~&^", r):
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return alphanumeric.ReplaceAllStringFunc(b.String(), func(word string) string {
		if hexadecimal.MatchString(word) {
			return "`" + word + "`"
		}
		return word
	})
}

// FuzzProse: prose is what the expressions make.
func FuzzProse(f *testing.F) {
	for _, text := range []string{
		"", "a", "www", "wwwwww", "wwwgh-www", "GH-1", "gh", "gh-", "Www.x", "deadbee", "deadbeef deadbe", "xdeadbeef", "deadbeef\u200b", "1234567:", "\x00\xff\u202e",
		"https://x", "a: b", "a:", ":", "$<@#>", "é1234567é", "1234567", "12345678\n", "ABCDEF0", "ABCDEFG", "/012345:", "@1234567", "[1234567]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := Prose(text), proseByExpressions(text); got != want {
			t.Errorf("%q is %q, not %q", text, got, want)
		}
	})
}
