package approval

import (
	"slices"
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
	switch verb {
	case "/approve":
		if named, ok := strings.CutPrefix(rest, breakGlassFlag); ok {
			return withReason(Command{Verb: VerbApprove, BreakGlass: true}, named)
		}
		if more && !isFingerprint(rest) {
			return Command{}, false
		}
		return Command{Verb: VerbApprove, Fingerprint: rest}, true
	case "/deny":
		rest = ledger.OneLine(rest, 2*reasonLimit)
		named, reason, _ := strings.Cut(rest, " ")
		if !isFingerprint(named) {
			named, reason = "", rest
		}
		return Command{Verb: VerbDeny, Fingerprint: named, Reason: ledger.OneLine(reason, reasonLimit)}, true
	case "/withdraw-deny":
		return withReason(Command{Verb: VerbWithdraw}, rest)
	}
	return Command{}, false
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
	words = append(words, c.Fingerprint, c.Reason)
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
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
