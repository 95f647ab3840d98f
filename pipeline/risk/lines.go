package risk

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// maxLineLength is how many characters a reader is expected to see of a line.
const maxLineLength = 500

// inLines lists what a reader does not see in added lines: one Risk for the long
// ones, one for each sort of hidden character, and one for words of look-alikes.
func inLines(path string, lines []patch.Line, secrets []int) []Risk {
	long := Risk{Kind: Long, Path: path}
	alike := Risk{Kind: Lookalike, Path: path}
	var words []string
	byEscape := map[string]*Risk{}
	for _, l := range lines {
		if n := utf8.RuneCount(l.Text); n > maxLineLength {
			long.at(l.Number)
			long.Detail = longest(long.Detail, n)
		}
		if ascii(l.Text) {
			continue
		}
		for _, escape := range hiddenIn(l.Text) {
			one := byEscape[escape]
			if one == nil {
				one = &Risk{Kind: Hidden, Path: path, Detail: escape}
				byEscape[escape] = one
			}
			one.at(l.Number)
		}
		for _, word := range lookalikes(string(l.Text)) {
			alike.at(l.Number)
			word = named(word, slices.Contains(secrets, l.Number))
			if !slices.Contains(words, word) && len(words) < maxLines {
				words = append(words, word)
			}
		}
	}
	var out []Risk
	if long.Lines != nil {
		out = append(out, long)
	}
	if alike.Lines != nil {
		alike.Detail = strings.Join(words, " ")
		out = append(out, alike)
	}
	for _, one := range byEscape {
		out = append(out, *one)
	}
	return out
}

// longest keeps the greatest length that was told.
func longest(detail string, n int) string {
	was := 0
	fmt.Sscanf(detail, "%d characters", &was)
	return fmt.Sprintf("%d characters", max(was, n))
}

// ascii reports whether a line has nothing but printable ASCII and tabs.
func ascii(text []byte) bool {
	return bytes.IndexFunc(text, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }) < 0
}

// hiddenIn returns what does not show in a line, each once, as escapes: the
// characters that ledger.Visible tells, and bytes that are not UTF-8.
func hiddenIn(text []byte) []string {
	var out []string
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		escape := ""
		switch {
		case r == utf8.RuneError && n == 1:
			escape = fmt.Sprintf(`\x%02x`, text[0])
		case r == '\t' || ledger.Visible(r):
		case r < 0x80:
			escape = fmt.Sprintf(`\x%02x`, r)
		default:
			escape = fmt.Sprintf("U+%04X", r)
		}
		if escape != "" && !slices.Contains(out, escape) {
			out = append(out, escape)
		}
		text = text[n:]
	}
	return out
}

// lookalikes returns the words of a line in which a letter that is
// none of ASCII stands for one that is: words of ASCII and such letters (Unicode
// Technical Standard 39, mixed scripts), and words of nothing but such letters in
// a line that has no other letter of their script.
func lookalikes(line string) []string {
	var out []string
	other := map[*unicode.RangeTable]bool{} // scripts that the line has plain letters of
	for _, r := range line {
		if _, alike := skeleton(r); !alike && unicode.IsLetter(r) {
			other[scriptOf(r)] = true
		}
	}
	isWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return !isWord(r) }) {
		plain, alike, shared := 0, 0, strings.ContainsAny(word, symbols) && utf8.RuneCountInString(word) == 1
		for _, r := range word {
			switch _, is := skeleton(r); {
			case is:
				alike++
				shared = shared || other[scriptOf(r)]
			case r < 0x80 && r != '_' && !unicode.IsDigit(r):
				plain++
			}
		}
		if alike > 0 && (plain > 0 || !shared) {
			out = append(out, word)
		}
	}
	return out
}

// named is a word as a list names it, "…" for one that is too long, or may be part
// of a secret.
func named(word string, secret bool) string {
	if secret || utf8.RuneCountInString(word) > maxWord {
		return "…"
	}
	return escapeWord(word)
}

// maxWord is how many letters a word has that is named.
const maxWord = 40

// escapeWord writes a word so that every letter shows for what it is.
func escapeWord(word string) string {
	var b strings.Builder
	for _, r := range word {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

// scriptOf is one of the scripts whose letters look like ASCII's, nil for another.
func scriptOf(r rune) *unicode.RangeTable {
	for _, t := range []*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee} {
		if unicode.Is(t, r) {
			return t
		}
	}
	return nil
}

// alikePairs are letters that are drawn as ASCII's in common typefaces, each with
// the one that it passes for: the part of Unicode's confusables (Unicode Technical
// Standard 39) that is one letter of Cyrillic, Greek, Armenian or Cherokee, or a
// variant of a Latin one, for one letter of ASCII.
const alikePairs = "аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwАAВBЕEКKМMНHОOРPСCТTХXІIЈJЅSҮYԌGԜWӏlӀl" +
	"αaοoνvρpιiυuκkτtΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX" +
	"օoսuցgհhոnքfՕOՍUաw" + "ᎪAᏴBᏟCᎬEᎻHᎫJᏦKᏞLᎷMᏢPᏒRᏚSᎢTᏙVᎳWᏃZ" + "ıiȷjɑaɡgɩi"

// symbols are letters of alikePairs that mathematics uses by themselves.
const symbols = "ανριυκτ"

var alikeLetters = sync.OnceValue(func() map[rune]rune {
	out, pairs := map[rune]rune{}, []rune(alikePairs)
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
})

// skeleton is the letter or digit of ASCII that a character passes for.
func skeleton(r rune) (rune, bool) {
	if r < 0x80 {
		return 0, false
	}
	if to, ok := alikeLetters()[r]; ok {
		return to, true
	}
	switch { // by the Unicode blocks of letters and digits that are ASCII's in another shape
	case r >= 0xFF10 && r <= 0xFF19, r >= 0xFF21 && r <= 0xFF3A, r >= 0xFF41 && r <= 0xFF5A: // full width
		return r - 0xFEE0, true
	case r >= 0x1D400 && r <= 0x1D6A3: // mathematical, A to Z and a to z in turn
		at := (r - 0x1D400) % 52
		return at%26 + map[bool]rune{true: 'A', false: 'a'}[at < 26], true
	case r >= 0x1D7CE && r <= 0x1D7FF:
		return '0' + (r-0x1D7CE)%10, true
	}
	return 0, false
}
