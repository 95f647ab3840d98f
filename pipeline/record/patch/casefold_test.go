package patch

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// peer is the same by x/text's tables of case, which are too large for a browser to load.
// For the small letters of Cherokee x/text has the capitals, as CaseFolding.txt has, but
// for the capitals the small ones.
func peer(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cherokee, r) {
			return unicode.ToLower(r)
		}
		return r
	}, norm.NFD.String(name))
	return norm.NFC.String(cases.Fold().String(name))
}

func checkFold(t testing.TB, name string) {
	t.Helper()
	if got, want := FoldName(name), peer(name); got != want {
		t.Errorf("%+q: %+q, want %+q", name, got, want)
	}
}

// TestEveryRune: alone, with a mark that composes, and as a mark.
func TestFoldEveryRune(t *testing.T) {
	for _, version := range []string{unicode.Version, cases.UnicodeVersion, norm.Version} {
		if version != "15.0.0" {
			t.Errorf("Unicode %s: what it assigns must fold to itself here (docs/spec, U-1)", version)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := string(r)
		checkFold(t, s)
		if (r%16 == 0 || os.Getenv("COUNTERSIGN_LONG") != "") && (unicode.IsLetter(r) || unicode.IsMark(r)) {
			checkFold(t, s+"\u0345\u0301")
			checkFold(t, "a"+s+"İ")
		}
	}
}

func TestFoldName(t *testing.T) {
	for name, want := range map[string]string{
		"":        "",
		".GitHub": ".github", "Straße": "strasse", "STRASSE": "strasse", "ﬁle": "file", "\u212a": "k",
		"ſ": "s", "Σς": "σσ", "ı": "ı", "İ": "i̇", "e\u0301": "é", "É": "é", "ᾼ": "αι", "Ꭰ": "Ꭰ", "ꭰ": "Ꭰ", "ᏸ": "Ᏸ",
	} {
		if got := FoldName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// FuzzName: as x/text has it, also of what is not UTF-8, and folded once is folded.
func FuzzName(f *testing.F) {
	for _, name := range []string{"", "Straße", "\xff\xfe", "A\xcc", "\u0345\u0301", "ΐᾳ", "\xed\xa0\x80É"} {
		f.Add(name)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		name := ""
		for range random.IntN(8) {
			name += string(rune(random.IntN(0x3000)))
		}
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		checkFold(t, name)
		if once := FoldName(name); utf8.ValidString(name) && FoldName(once) != once {
			t.Errorf("%+q: %+q, and then %+q", name, once, FoldName(once))
		}
	})
}
