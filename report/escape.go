package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
)

// Foreign text stands in Markdown in one of three ways: prose, code and fenced.
// None of them lets it make structure, links, mentions, images or HTML.

// zeroWidth is put where a character would start a mention or a link: GitHub
// looks for these in the rendered text too, where an escape is gone.
const zeroWidth = "\u200b"

// linking are the beginnings of links that have no special character. A text that
// ends in www may have a full stop of ours behind it.
var linking = lazyregexp.New(`(?i)www|gh-`)

// prose is somebody's words in a sentence of ours, never at the start of a
// line. Punctuation is escaped (CommonMark 2.4), what links is broken up.
func prose(text string) string {
	runes := []rune(linking().ReplaceAllStringFunc(Clean(text), func(m string) string {
		word := strings.TrimSuffix(m, "-")
		return word + zeroWidth + m[len(word):]
	}))
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '$': // mathematics, for which GitHub knows no other escape
			b.WriteString("<span>$</span>")
		case r == '@' || r == '#':
			b.WriteString(string(r) + zeroWidth)
		case r == ':' && (i+1 == len(runes) || runes[i+1] != ' '): // https://, :emoji:
			b.WriteString(string(r) + zeroWidth)
		case strings.ContainsRune("\\`*_{}[]()!|>~&^", r):
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// code is a name, shown letter by letter: a code span, or, where one could be
// broken out of (by a backtick, or in a table by a bar), HTML with entities.
func code(text string) string {
	shown := Clean(text)
	if shown == "" {
		return ""
	}
	if strings.TrimSpace(shown) == shown && !strings.ContainsAny(shown, "`|\\") {
		return "`" + shown + "`"
	}
	var b strings.Builder
	for _, r := range shown {
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
	return r == ' ' || r == '/' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// codes is a list of names, at most most of them.
func codes(names []string, most int) string {
	var out []string
	for _, name := range names[:min(len(names), most)] {
		out = append(out, code(shorten(name)))
	}
	if more := len(names) - most; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// fenced is a code block. Its fence is longer than any run of backticks in the
// text, so that no line of the text can end it (CommonMark 4.5).
func fenced(lang, text string) string {
	fence := fenceFor(backticks(text))
	return fence + lang + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}

func fenceFor(run int) string { return strings.Repeat("`", max(3, run+1)) }

// backticks is the length of the longest run of them.
func backticks(text string) int {
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

// lineBlock is a block with one line to copy.
func lineBlock(line string) string { return fenced("text", Clean(line)) }

// maxWords is how many characters of a foreign text are shown in one place.
const maxWords = 300

// shorten cuts a text that is too long for one place. What is not UTF-8 stays
// as it is, for Clean to show.
func shorten(text string) string {
	n := 0
	for i := range text {
		if n == maxWords {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// words is prose of limited length.
func words(text string) string { return prose(shorten(text)) }

// name is code of limited length.
func name(text string) string { return code(shorten(text)) }

var safeURL = lazyregexp.New(`^https?://[A-Za-z0-9./_:#?=&%-]+$`)

// maxURL bounds an address; in the expression it would be written out, which
// every start of the program would pay for.
const maxURL = 500

// link is a link to an address that the forge told, plain text if that is odd.
func link(text, url string) string {
	if len(url) > maxURL || !safeURL().MatchString(url) {
		return text
	}
	return "[" + text + "](" + url + ")"
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if noun == "person" {
		return fmt.Sprintf("%d people", n)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
