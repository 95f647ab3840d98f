package risk

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// maxLineLength is how many characters a reader is expected to see of a line.
const maxLineLength = 500

// inLines lists what a reader does not see in added lines: one Risk for the long
// ones, one for each sort of hidden character and of text that stands out of sight,
// and one for words of look-alikes.
func inLines(path string, lines []gitpatch.Line, secrets []int) []Risk {
	long := Risk{Kind: Long, Path: path}
	alike := Risk{Kind: Lookalike, Path: path}
	words, unnamed, longest := []string{}, map[string]bool{}, 0
	byDetail := map[string]*Risk{}
	hidden := func(detail string, line int) {
		if byDetail[detail] == nil {
			byDetail[detail] = &Risk{Kind: Hidden, Path: path, Detail: detail}
		}
		byDetail[detail].at(line)
	}
	var blanks blankLines
	for _, l := range lines {
		if blanks.before(l) {
			hidden(belowBlanks, l.After)
		}
		for _, detail := range outOfSight(l.Text) {
			hidden(detail, l.After)
		}
		if l.After <= 2 {
			if m := coding().FindSubmatch(l.Text); m != nil && !plainCoding().Match(m[1]) {
				hidden("it is read as "+named(string(m[1]), slices.Contains(secrets, l.After)), l.After)
			}
		}
		if n := utf8.RuneCount(l.Text); n > maxLineLength {
			long.at(l.After)
			longest = max(longest, n)
		}
		if ascii(l.Text) {
			continue
		}
		for _, word := range lookalikes(string(l.Text)) {
			alike.at(l.After)
			word = named(word, slices.Contains(secrets, l.After))
			switch {
			case slices.Contains(words, word):
			case len(words) < maxLines:
				words = append(words, word)
			default:
				unnamed[word] = true
			}
		}
	}
	var out []Risk
	if long.Lines != nil {
		long.Detail = fmt.Sprintf("%d characters", longest)
		out = append(out, long)
	}
	if alike.Lines != nil {
		alike.Detail = strings.Join(words, " ")
		if len(unnamed) > 0 {
			alike.Detail += fmt.Sprintf(" and %d more", len(unnamed))
		}
		out = append(out, alike)
	}
	for _, one := range byDetail {
		out = append(out, *one)
	}
	return out
}

// outOfSight tells what a reader does not see in a line.
func outOfSight(text []byte) []string {
	var out []string
	if behindBlanks(text) {
		out = append(out, besideBlanks)
	}
	if rest := bytes.TrimRight(text, " \t"); len(rest) < len(text) && bytes.HasSuffix(rest, []byte("\\")) {
		out = append(out, noContinuation)
	}
	if ascii(text) {
		return out
	}
	out = append(out, hiddenIn(text)...)
	if at := bytes.IndexByte(text, '\r'); at >= 0 && at < len(text)-1 {
		out = append(out, overwrites)
	}
	if reordered(string(text)) {
		out = append(out, reorders)
	}
	return out
}

// blankLines counts added lines in a row that are blank.
type blankLines struct{ count, last int }

// before reports whether so many are before a line that has text, that it is out of sight.
func (b *blankLines) before(l gitpatch.Line) bool {
	if l.After != b.last+1 {
		b.count = 0
	}
	b.last = l.After
	if len(bytes.TrimSpace(l.Text)) == 0 {
		b.count++
		return false
	}
	far := b.count >= farDown
	b.count = 0
	return far
}

// An interpreter reads a file in the encoding that its first lines name (PEP 263), in which
// what looks like a comment may be code.
var (
	coding      = canon.Regexp(`^[ \t\f]*(?:#|//|--|;|/\*).*?coding[:=][ \t]*([-_.a-zA-Z0-9]{1,40})`)
	plainCoding = canon.Regexp(`(?i)^(utf-?8(-unix|-sig)?|(us-)?ascii|binary)$`)
)

// ascii reports whether a line has nothing but printable ASCII and tabs.
func ascii(text []byte) bool {
	return bytes.IndexFunc(text, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }) < 0
}

// shows reports whether a reader sees a character for what it is: ledger.Visible
// has those that do, but for a few that are symbols by their class and that fonts
// draw as nothing (null notehead, Khitan filler, hieroglyphic blanks, object replacement).
func shows(r rune) bool {
	return ledger.Visible(r) && !strings.ContainsRune("\U0001D159\U00016FE4\U00013441\U00013442\uFFFC", r)
}

// hiddenIn returns what does not show in a line, each once, as escapes: the
// characters that shows tells, and bytes that are not UTF-8.
func hiddenIn(text []byte) []string {
	var out []string
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		escape := ""
		switch {
		case r == utf8.RuneError && n == 1:
			escape = fmt.Sprintf(`\x%02x`, text[0])
		case r == '\t' || shows(r):
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

// What is said of text that stands where nobody looks, and of text that is shown in
// another order than it has.
const (
	besideBlanks = "text behind columns of blanks"
	belowBlanks  = "text below blank lines"
	reorders     = "right-to-left letters reorder the line"
	overwrites   = "a carriage return within the line"

	noContinuation = "blanks behind a final backslash"
)

// So many blank columns in a line, so many columns of indentation and so many blank
// lines put what follows out of sight: on a screen of 80 × 24 or on the next page.
const (
	farAside    = 40
	farIndented = 80
	farDown     = 24
)

// behindBlanks reports whether a line has text that blanks push out of sight. A tab
// is as many columns as it may be.
func behindBlanks(text []byte) bool {
	at, from, far := 0, 0, farIndented // from: where the blanks before at begin
	for _, r := range string(text) {
		switch {
		case r == '\t':
			at += 8 - at%8
		case unicode.IsSpace(r) || r != utf8.RuneError && !shows(r):
			at++
		case at-from >= far:
			return true
		default:
			at++
			from, far = at, farAside
		}
	}
	return false
}

// reordered reports whether a line is shown in another order than a program reads it
// (Unicode Standard Annex 9): signs of code stand between right-to-left letters,
// or between one and a digit.
func reordered(text string) bool {
	after, signs := false, false // a right-to-left letter, and signs behind it
	for _, r := range text {
		p, _ := bidi.LookupRune(r)
		switch class := p.Class(); {
		case (class == bidi.R || class == bidi.AL || class == bidi.EN || class == bidi.AN) && after && signs:
			return true
		case class == bidi.R || class == bidi.AL:
			after = true
		case class == bidi.L:
			after, signs = false, false
		default:
			signs = signs || after && strings.ContainsRune("+-*/%=<>!&|^~(){}[];\"'`#$@\\", r)
		}
	}
	return false
}
