// Package escape makes foreign text harmless: in Markdown, where it stays text, and in the message of
// a commit; and it knows the characters that readers take for ASCII's. It is pure.
//
// A message has the words that a proposer brings and the trailers that this program adds to them.
// A proposer's message is text that nobody has verified. What skips a forge's checks, ends
// a message for Git, or could be taken for a trailer of this program is made harmless:
// such a line is quoted with "> ". Words that a forge obeys in any commit, as "Fixes #1"
// and "@name", stay. The other trailers of the message are
// declarations. They stand in the block that ends the commit's message, before the
// program's own:
//
//	Greet the world
//
//	The greeting was for nobody.
//
//	Assisted-by: some model
//	Countersign-Transaction: tx_01KE5W5200041061050R3GG28A
//	Countersign-Patch: abababababababababababababababababababababababababababababababab
//	Approved-by: ada <7+ada@users.noreply.github.example>
package escape

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// What is kept of messages: MaxMessage bytes of text, and so many declarations of so many
// characters each.
const (
	MaxMessage  = 8 << 10
	maxDeclared = 50
	maxTrailer  = 500
)

const cutHere = "… cut here"

// ReadMessages makes the messages of one change a text that a commit can have, of at most MaxBytes, and the trailers
// that they end with a list, "Key: value" each. Of several messages the texts follow each other.
// What Read returns it returns again.
func ReadMessages(messages ...string) (text string, declared []string) {
	text, declared = readMessages(messages...)
	return cutMessage(text), declared
}

func readMessages(messages ...string) (text string, declared []string) {
	var all []string
	for _, m := range messages {
		body, trailers := splitMessage(messageLines(m))
		if len(body) > 0 {
			all = append(all, strings.Join(body, "\n"))
		}
		for _, t := range trailers {
			if len(declared) < maxDeclared && !slices.Contains(declared, t) {
				declared = append(declared, t)
			}
		}
	}
	return strings.Join(all, "\n\n"), declared
}

// cutMessage is a text of at most MaxMessage bytes, in whole lines, and a line that says so.
func cutMessage(text string) string {
	if len(text) <= MaxMessage {
		return text
	}
	text = text[:MaxMessage-len("\n\n"+cutHere)]
	if end := strings.LastIndexByte(text, '\n'); end > 0 {
		text = text[:end]
	}
	return strings.TrimRight(strings.ToValidUTF8(text, ""), " \n") + "\n\n" + cutHere
}

// messageLines are those of a text as Line makes them, of visible characters alone. No two empty ones follow each
// other, and none begins or ends it.
func messageLines(text string) []string {
	var out []string
	for line := range strings.Lines(strings.ToValidUTF8(text, " ")) {
		line = strings.Map(func(r rune) rune {
			if ledger.Visible(r) && r != unicode.ReplacementChar {
				return r
			}
			return ' '
		}, strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
		line = MessageLine(strings.TrimRight(line, " "))
		if line == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, line)
	}
	if len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// splitMessage takes the trailers off the end of a message. As Git has it, they are in its last paragraph, which
// is not its first, where all lines are trailers, or one is of those that Git itself writes and
// a fourth of the lines are (git-interpret-trailers(1)). What follows one and begins with
// a space belongs to it. Lines that Line has changed are left in the text.
func splitMessage(all []string) (body, trailers []string) {
	start := len(all)
	for start > 0 && all[start-1] != "" {
		start--
	}
	if start == 0 {
		return all, nil
	}
	var rest []string
	var folded [][]string // the lines of each trailer
	gits, others := false, 0
	for _, line := range all[start:] {
		switch {
		case strings.HasPrefix(line, " ") && len(folded) > 0 && len(rest) == 0:
			folded[len(folded)-1] = append(folded[len(folded)-1], strings.TrimSpace(line))
		case trailer().MatchString(line):
			folded = append(folded, []string{line})
			gits = gits || strings.HasPrefix(line, "Signed-off-by: ")
		case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "skip checks"), strings.HasPrefix(line, "(cherry picked from commit "):
			rest = append(rest, line)
		default:
			rest = append(rest, line)
			others++
		}
	}
	if len(folded) == 0 || others > 0 && (!gits || others > 3*len(folded)) {
		return all, nil
	}
	for _, lines := range folded {
		key, value, _ := strings.Cut(strings.Join(lines, " "), ":")
		trailers = append(trailers, strings.TrimRight(key, " ")+": "+ledger.OneLine(value, maxTrailer))
	}
	body = append(slices.Clip(all[:start]), rest...)
	if len(rest) == 0 {
		body = all[:start-1] // without the empty line
	}
	return body, trailers
}

var (
	trailer   = canon.Regexp(`^[A-Za-z][A-Za-z0-9-]{0,49} *: +[^ ]`)
	stars     = canon.Regexp(`\*{3,}`)
	scissors  = canon.Regexp(`(-{8,}) >8 (-{8,})`)
	skipCheck = canon.Regexp(`(?i)skip-checks`)
)

// MessageLine makes a line of a proposer's one that a commit can have. What a forge or its CI obeys, such as
// "[skip ci]" (GitHub's documentation, "Skipping workflow runs"), loses its signs: other
// services have other words, all of them in brackets or asterisks. Git takes some lines
// for the end of a message, or for the beginning of a diff; these, and those that could be
// taken for trailers of this program, are quoted.
func MessageLine(line string) string {
	line = strings.NewReplacer("[", "(", "]", ")").Replace(line)
	line = stars().ReplaceAllStringFunc(line, func(s string) string { return "*" + strings.Repeat(" *", len(s)-1) })
	line = skipCheck().ReplaceAllString(line, "skip checks")
	line = scissors().ReplaceAllString(line, "$1 > 8 $2")
	if ends(line) || ours(line) {
		return "> " + line
	}
	return line
}

// ends reports whether a line ends a message, for git-mailinfo(1) or git-interpret-trailers(1).
func ends(line string) bool {
	rest, dashes := strings.CutPrefix(line, "---")
	return dashes && (rest == "" || rest[0] == ' ') || strings.HasPrefix(line, "diff -") || strings.HasPrefix(line, "Index: ")
}

// ours reports whether a reader could take a line for a trailer of this program: a key
// that begins as one, in whatever letters pass for its own, and a separator. One that is quoted
// is none.
func ours(line string) bool {
	plain := ASCII(line)
	end := strings.IndexAny(plain, ":=(/.@")
	if end < 0 || !strings.ContainsAny(plain[end:], ":=") || strings.HasPrefix(line, ">") {
		return false
	}
	key := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r
		}
		return -1
	}, digits.Replace(strings.ToLower(plain[:end])))
	return strings.HasPrefix(key, "countersign") && (key != "countersign" || strings.Contains(plain[:end], "-")) || strings.HasPrefix(key, "approvedby")
}

// digits and what else passes for letters of these keys.
var digits = strings.NewReplacer("0", "o", "1", "i", "l", "i", "|", "i", "!", "i", "5", "s", "$", "s", "3", "e")

// Message is a commit's message: a subject, the text and the declarations as a record has
// them, and the program's own trailers. A text whose first line is the subject goes on
// from there.
func Message(subject, text string, declared, own []string) string {
	subject = MessageLine(subject)
	text, declared = readMessages(subject + "\n\n" + text + "\n\n" + strings.Join(declared, "\n"))
	for range 2 {
		if first, rest, _ := strings.Cut(text, "\n"); first == subject {
			text = strings.TrimLeft(rest, "\n")
		}
	}
	parts := []string{subject, text, strings.Join(append(declared, own...), "\n")}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n") + "\n"
}

// QuoteList makes the first few paths of a list safe to print.
func QuoteList(paths []string) string {
	const most = 10
	var out []string
	for _, p := range paths[:min(most, len(paths))] {
		out = append(out, patch.Quote(p))
	}
	if len(paths) > most {
		out = append(out, fmt.Sprintf("and %d more", len(paths)-most))
	}
	return strings.Join(out, ", ")
}
