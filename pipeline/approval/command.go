package approval

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A Verb is the word that a command begins with, without its slash.
type Verb string

// The verbs.
const (
	VerbApprove  Verb = "approve"
	VerbDeny     Verb = "deny"
	VerbWithdraw Verb = "withdraw-deny"
)

// A Command is what the first line of a comment says. Without a Fingerprint it
// is about the patch of the thread that it stands in.
type Command struct {
	Verb        Verb   `json:"verb"`
	BreakGlass  bool   `json:"break_glass,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Reason      string `json:"reason,omitempty"` // one line of visible characters
}

const (
	breakGlassFlag = "--break-glass "
	reasonLimit    = 500 // characters
)

// ParseCommand reads the command that a comment is, and reports whether it is one:
//
//	/approve <fingerprint>
//	/approve --break-glass <fingerprint> <reason>
//	/deny <fingerprint>[ <reason>]
//	/withdraw-deny <fingerprint> <reason>
//	/approve
//	/deny[ <reason>]
//
// A fingerprint is patchset: and 64 lower-case hexadecimal digits, with secret:
// or protected: before it where it is of that kind.
//
// Only the very first line is read, up to its LF or CR LF. What stands there must
// be the command to the byte: nothing before it, single spaces, ASCII, and after
// what is approved nothing at all, not even a space. Only what follows /deny and
// its space is read with more patience, as to overlook a denial is worse.
func ParseCommand(body string) (Command, bool) {
	verb, rest, more := strings.Cut(firstLine(body), " ")
	switch {
	case verb == "/approve" && !more:
		return Command{Verb: VerbApprove}, true
	case verb == "/approve":
		return parseApprove(rest)
	case verb == "/deny":
		return parseDeny(rest), true
	case verb == "/withdraw-deny":
		return withReason(Command{Verb: VerbWithdraw}, rest)
	}
	return Command{}, false
}

func parseApprove(rest string) (Command, bool) {
	if named, ok := strings.CutPrefix(rest, breakGlassFlag); ok {
		return withReason(Command{Verb: VerbApprove, BreakGlass: true}, named)
	}
	if !isFingerprint(rest) {
		return Command{}, false
	}
	return Command{Verb: VerbApprove, Fingerprint: rest}, true
}

func parseDeny(rest string) Command {
	rest = ledger.OneLine(rest, 2*reasonLimit)
	named, reason, _ := strings.Cut(rest, " ")
	if isFingerprint(named) {
		return Command{Verb: VerbDeny, Fingerprint: named, Reason: ledger.OneLine(reason, reasonLimit)}
	}
	return Command{Verb: VerbDeny, Reason: ledger.OneLine(rest, reasonLimit)}
}

// withReason takes the fingerprint, and the reason that has to follow.
func withReason(c Command, rest string) (Command, bool) {
	named, reason, _ := strings.Cut(rest, " ")
	c.Fingerprint, c.Reason = named, ledger.OneLine(reason, reasonLimit)
	if !isFingerprint(named) || c.Reason == "" || reason[0] == ' ' {
		return Command{}, false
	}
	return c, true
}

// String is the line that reads as c.
func (c Command) String() string {
	words := []string{"/" + string(c.Verb)}
	if c.BreakGlass {
		words = append(words, strings.TrimSpace(breakGlassFlag))
	}
	for _, word := range []string{c.Fingerprint, c.Reason} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

func firstLine(body string) string {
	line, _, _ := strings.Cut(body, "\n")
	return strings.TrimSuffix(line, "\r")
}

func isFingerprint(s string) bool {
	s, secret := strings.CutPrefix(s, "secret:")
	if !secret {
		s = strings.TrimPrefix(s, "protected:")
	}
	digits, ok := strings.CutPrefix(s, "patchset:")
	return ok && canon.IsHex64(digits)
}

// LooksLike reports whether the first line seems to be meant as a command, right or
// wrong, so that its author can be told why it counts for nothing.
func LooksLike(body string) bool {
	line := strings.ToLower(strings.Map(shown, firstLine(body)))
	plain := strings.TrimLeft(line, " \t>`*_~-#\\\"'")
	for _, start := range []string{"/approve", "/deny", "/withdraw-deny"} {
		if strings.HasPrefix(plain, start) {
			return true
		}
	}
	return strings.Contains(line, "patchset:")
}

// shown leaves out what nobody sees, and makes every space U+0020.
func shown(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case !ledger.Visible(r) && r != utf8.RuneError:
		return -1
	}
	return r
}
