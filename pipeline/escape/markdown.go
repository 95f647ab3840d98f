package escape

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// Foreign text in Markdown (GitHub's, GitLab's and Forgejo's) stays text: no structure, link, mention,
// image, HTML or mathematics comes of it. It stands there in one of three ways: prose, code and fenced.
// None of them lets it make structure, links, mentions, images or HTML.

// zeroWidth is put where a character would start a mention or a link: GitHub
// looks for these in the rendered text too, where an escape is gone.
const zeroWidth = "\u200b"

// Prose is somebody's words in a sentence of ours, never at the start of a
// line. Punctuation is escaped (CommonMark 2.4), what links is broken up.
func Prose(text string) string {
	text = Clean(text)
	var b strings.Builder
	for i := 0; i < len(text); {
		if n := linking(text[i:]); n > 0 {
			b.WriteString(text[i:i+n] + zeroWidth)
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		next := text[i+size:]
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '$': // mathematics, for which GitHub knows no other escape
			b.WriteString("<span>$</span>")
		case r == '@' || r == '#':
			b.WriteString(string(r) + zeroWidth)
		case r == ':' && !strings.HasPrefix(next, " "): // https://, :emoji:
			b.WriteString(string(r) + zeroWidth)
		case r < utf8.RuneSelf && strings.IndexByte("\\`*_{}[]()!|>~&^", byte(r)) >= 0:
			b.WriteString("\\" + string(r))
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return coded(b.String())
}

// linking is how many bytes of a text are the beginning of a link that has no special character, 0 for none: "www", and
// "gh" of "gh-1". A text that ends in www may have a full stop of ours behind it.
func linking(text string) int {
	switch {
	case len(text) < 3 || text[0]|0x20 != 'w' && text[0]|0x20 != 'g':
	case strings.EqualFold(text[:3], "www"):
		return 3
	case strings.EqualFold(text[:3], "gh-"):
		return 2
	}
	return 0
}

// coded is a text with each word of seven hexadecimal digits or more in a code span. GitHub takes one for a
// commit, of whatever repository, and links it; in a code span it does not.
func coded(text string) string {
	var b strings.Builder
	done := 0 // what b has
	for i := 0; i < len(text); i++ {
		from, digits := i, true
		for ; i < len(text) && isAlphanumeric(text[i]); i++ {
			digits = digits && (text[i] <= '9' || text[i]|0x20 <= 'f')
		}
		if digits && i-from >= 7 {
			b.WriteString(text[done:from] + "`" + text[from:i] + "`")
			done = i
		}
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// Code is a name, shown letter by letter: a code span, or, where one could be
// broken out of (by a backtick, or in a table by a bar), HTML with entities.
func Code(text string) string {
	shown := Clean(text)
	if shown == "" {
		return ""
	}
	if strings.TrimSpace(shown) == shown && !strings.ContainsAny(shown, "`|\\") {
		return "`" + shown + "`"
	}
	return Tagged(text)
}

// Tagged is Code as HTML, for where Markdown is not read: inside of HTML.
func Tagged(text string) string {
	var b strings.Builder
	for _, r := range Clean(text) {
		switch {
		case r == '@': // in HTML's code too GFM links an address
			b.WriteString("&#64;" + zeroWidth)
		case r < 0x80 && !isPlain(r):
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return "<code>" + b.String() + "</code>"
}

// isPlain reports whether an ASCII character never means anything in Markdown.
func isPlain(r rune) bool {
	return r == ' ' || r == '/' || r < utf8.RuneSelf && isAlphanumeric(byte(r))
}

// Fenced is a code block. Its fence is longer than any run of backticks in the
// text, so that no line of the text can end it (CommonMark 4.5).
func Fenced(lang, text string) string {
	fence := Fence(Backticks(text))
	return fence + lang + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}

func Fence(run int) string { return strings.Repeat("`", max(3, run+1)) }

// Backticks is the length of the longest run of them.
func Backticks(text string) int {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// MaxWords is how many characters of a foreign text are shown in one place.
const MaxWords = 300

// Shorten cuts a text that is too long for one place. What is not UTF-8 stays
// as it is, for Clean to show.
func Shorten(text string) string { return ShortenTo(text, MaxWords) }

func ShortenTo(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// Words is prose of limited length.
func Words(text string) string { return Prose(Shorten(text)) }

// Name is code of limited length.
func Name(text string) string { return Code(Shorten(text)) }

var safeURL = canon.Regexp(`^https?://[A-Za-z0-9./_:#?=&%-]+$`)

// maxURL bounds an address; in the expression it would be written out, which
// every start of the program would pay for.
const maxURL = 500

// Link is a link to an address that the forge told, plain text if that is odd.
func Link(text, url string) string {
	if len(url) > maxURL || !safeURL().MatchString(url) {
		return text
	}
	return "[" + text + "](" + url + ")"
}

// Clean makes foreign text safe in one line: what
// does not print (controls, bidi, zero width) is shown as an escape (T14).
func Clean(text string) string {
	plain := 0
	for plain < len(text) && ' ' <= text[plain] && text[plain] < 0x7f {
		plain++
	}
	if plain == len(text) {
		return text
	}
	var b strings.Builder
	for b.WriteString(text[:plain]); plain < len(text); {
		r, size := utf8.DecodeRuneInString(text[plain:])
		b.WriteString(Show(r, text[plain:plain+size]))
		plain += size
	}
	return b.String()
}

// Show is a character, raw in its text, as it may be shown.
func Show(r rune, raw string) string {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Sprintf(`\x%02x`, raw[0])
	case canon.Visible(r):
		return raw
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
