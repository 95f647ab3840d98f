package checks

import (
	"slices"
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/policy"
)

// Allowed returns the Policy's entry for what a Proposal asks to run, which is
// one line of text. The line is never taken apart: it must be an entry's words
// with single spaces between them, or a shell entry's script, to the byte. An
// entry with an empty word, or one that holds a space or a quote, has no such
// line, since another entry could have the same.
func Allowed(p policy.Policy, line string) (policy.Command, bool) {
	for _, shell := range []bool{false, true} {
		for _, c := range p.Commands.Allow {
			if c.Shell == shell && isLine(c, line) {
				return c, true
			}
		}
	}
	return policy.Command{}, false
}

func isLine(c policy.Command, line string) bool {
	if c.Shell {
		return len(c.Argv) == 1 && line != "" && c.Argv[0] == line
	}
	return len(c.Argv) > 0 && !slices.ContainsFunc(c.Argv, needsQuotes) && strings.Join(c.Argv, " ") == line
}

func needsQuotes(word string) bool {
	return word == "" || strings.ContainsAny(word, `"'`+"`\\") || strings.ContainsFunc(word, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	})
}
