package escape

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// ShellQuote writes a word so that a POSIX shell reads it as it is.
func ShellQuote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:") == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ShellWords are some words for a shell, with a space between them.
func ShellWords(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = ShellQuote(word)
	}
	return strings.Join(out, " ")
}

// Pathspecs are some files as Git takes them from a shell, with a space between them: no option, and no
// pattern that takes others along. magic is "top" for names from the top of the working tree, "" from here.
func Pathspecs(names []string, magic string) string {
	out := make([]string, len(names))
	for i, name := range names {
		switch special := strings.ContainsAny(name, `*?[\`) || strings.HasPrefix(name, "-") || strings.HasPrefix(name, ":"); {
		case special && magic != "":
			name = ":(" + magic + ",literal)" + name
		case special:
			name = ":(literal)" + name
		case magic == "top":
			name = ":/" + name
		}
		out[i] = name
	}
	return ShellWords(out)
}

// JSON writes what does not show in a JSON document, which is UTF-8 and
// stands in one line, with JSON's escapes (RFC 8259, section 7).
func JSON(doc string) string {
	var b strings.Builder
	for _, r := range doc {
		switch {
		case canon.Visible(r) || r == '\n':
			b.WriteRune(r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}
