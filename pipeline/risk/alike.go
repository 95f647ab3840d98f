package risk

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-dev/countersign/pipeline/escape"
)

// lookalikes returns what of a line a reader takes for ASCII, or for other letters,
// and a program does not (Unicode Technical Standard 39):
//
//   - words of ASCII and letters that pass for it;
//   - words of nothing but such letters, unless prose of their script stands beside;
//   - words whose letters and accents stand apart, so that two words look like one;
//   - signs that pass for ASCII's, and marks that change a sign.
func lookalikes(line string) []string {
	var out []string
	words := wordsOf(line)
	excuse(line, words)
	for _, w := range words {
		if w.plain && w.alike || w.alike && !w.prose || w.apart {
			out = append(out, line[w.from:w.to])
		}
	}
	chinese := strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) && unicode.In(r, chineseScripts...) })
	for _, r := range line {
		if !inWord(r) && escape.PassesForASCII(r) && !(chinese && strings.ContainsRune(chineseSigns, r)) {
			out = append(out, string(r))
		}
	}
	return out
}

// A word is a part of a line, and what its letters are.
type word struct {
	from, to int
	plain    bool                // some are ASCII's
	alike    bool                // some pass for ASCII's
	script   *unicode.RangeTable // of those, or else of the others, nil for none of alikeScripts
	prose    bool                // it reads as a word of its script
	apart    bool                // its accents stand apart, or it begins with a mark
}

func inWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

func wordsOf(line string) []word {
	var out []word
	for at := 0; at < len(line); {
		rest := line[at:]
		size := strings.IndexFunc(rest, func(r rune) bool { return !inWord(r) })
		if size < 0 {
			size = len(rest)
		}
		if size > 0 {
			out = append(out, newWord(line, at, at+size))
		}
		_, sign := utf8.DecodeRuneInString(rest[size:])
		at += size + sign
	}
	return out
}

func newWord(line string, from, to int) word {
	w := word{from: from, to: to}
	text := line[from:to]
	first, _ := utf8.DecodeRuneInString(text)
	w.apart = unicode.IsMark(first) && from > 0 || !norm.NFC.IsNormalString(text) && strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic) })
	var other *unicode.RangeTable // script of letters that do not pass for ASCII's
	mixed := false
	for _, r := range text {
		switch {
		case escape.PassesForASCII(r):
			script := scriptOf(r)
			mixed = mixed || w.alike && script != w.script
			w.alike, w.script = true, script
		case r < utf8.RuneSelf:
			w.plain = w.plain || unicode.IsLetter(r)
		case unicode.IsLetter(r):
			script := scriptOf(r)
			mixed = mixed || other != nil && script != other
			other = script
		}
	}
	switch {
	case mixed:
		w.script = nil
	case !w.alike: // it is prose of the script of its letters
		w.script = other
	}
	w.prose = w.script != nil && w.script == other && !w.plain || utf8.RuneCountInString(text) == 1 && strings.Contains(symbols, text)
	return w
}

// excuse finds the words that are prose as one beside them is, of the same script and
// with no sign of code between.
func excuse(line string, words []word) {
	beside := func(w *word, o word) {
		left, right := min(w.to, o.to), max(w.from, o.from)
		w.prose = w.prose || o.prose && w.script != nil && w.script == o.script && strings.Trim(line[left:right], " ,.:;!?–—«»„“”…") == ""
	}
	for i := 1; i < len(words); i++ {
		beside(&words[i], words[i-1])
	}
	for i := len(words) - 2; i >= 0; i-- {
		beside(&words[i], words[i+1])
	}
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

// alikeScripts are those whose letters pass for ASCII's, and chinese.
var alikeScripts = []*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Lisu, unicode.Coptic}

// scriptOf is one of alikeScripts, Han for all that is written with letters of full
// width, and nil for another.
func scriptOf(r rune) *unicode.RangeTable {
	if r >= 0xFF01 && r <= 0xFF5E || unicode.In(r, chineseScripts...) {
		return unicode.Han
	}
	for _, t := range alikeScripts {
		if unicode.Is(t, r) {
			return t
		}
	}
	return nil
}

// Chinese, Japanese and Korean are written in these scripts, and with these signs of
// full width.
var chineseScripts = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo}

const chineseSigns = "，：；！？（）～"

// symbols are letters of alikePairs that mathematics uses by themselves.
const symbols = "ανριυκτ"
