package escape

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// pairsOf are characters that are drawn as ASCII's in common typefaces, each with
// the one that it passes for: the part of Unicode's confusables (Unicode Technical
// Standard 39) that is one letter of the scripts that package risk names, or a variant of a Latin one,
// for one letter of ASCII, or a sign for a sign.
const pairsOf = "аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwѵvАAВBЕEКKМMНHОOРPСCТTХXІIЈJЅSҮYԌGԜWԚQѴVӏlӀl" +
	"αaοoνvρpιiυuκkτtϲcϳjΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXϹCͿJ" +
	"օoսuցgհhոnքfՕOՍUաw" + "ᎪAᏴBᏟCᎬEᎻHᎫJᏦKᏞLᎷMᏢPᏒRᏚSᎢTᏙVᎳWᏃZ" +
	"ꓮAꓐBꓚCꓓDꓰEꓝFꓖGꓧHꓲIꓙJꓗKꓡLꓟMꓠNꓳOꓑPꓣRꓢSꓔTꓴUꓦVꓪWꓫXꓬYꓜZ" + "ⲀAⲂBⲈEⲎHⲒIⲔKⲘMⲚNⲞOⲟoⲢPⲣpⲤCⲥcⲦTⲨYⲬXⲭx" +
	"ıiȷjɑaɡgɩiᴄcᴏoᴠvᴡwᴢzꜱs" +
	"ǃ!ǀ|ꞌ'ʼ'∕/⁄/⧸/∖\\⧵\\∶:꞉:։:∗*⁎*−-‐-‑-‚,∣|٪%"

var characters = sync.OnceValue(func() map[rune]rune {
	out, pairs := map[rune]rune{}, []rune(pairsOf)
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
})

// PassesForASCII reports whether a reader takes a character for ASCII: one of
// pairsOf, or one whose compatibility form (NFKC) is ASCII, which some languages
// read in its place: letters of full width, of mathematics and of numerals, ligatures.
// It leaves alone superscripts and numbers that nobody takes for ASCII (², ª, ①, ½),
// and signs that stand for several (…, ™).
func PassesForASCII(r rune) bool {
	if r < utf8.RuneSelf || r == 'ª' || r == 'º' || unicode.Is(unicode.No, r) {
		return false
	}
	if characters()[r] != 0 {
		return true
	}
	form := norm.NFKC.PropertiesString(string(r)).Decomposition()
	for _, c := range form {
		if c < '!' || c > '~' {
			return false
		}
	}
	return len(form) == 1 || len(form) > 1 && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Sm, r))
}

// ASCII is a text with each character that passes for one of ASCII's, or for several, as
// these.
func ASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch plain, known := characters()[r]; {
		case r < utf8.RuneSelf || !PassesForASCII(r):
			b.WriteRune(r)
		case known:
			b.WriteRune(plain)
		default:
			b.WriteString(norm.NFKC.String(string(r)))
		}
	}
	return b.String()
}
