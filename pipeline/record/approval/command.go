package approval

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Verb is the word that a command begins with, without its slash.
type Verb string

// The verbs.
const (
	VerbApprove Verb = "approve"
	VerbDeny    Verb = "deny"
)

// A Command is what the first line of a comment says. Without a Fingerprint it
// is about the patch of the thread that it stands in, and Kind says which approval
// of that it gives: policy.KindSecret, KindProtected, or "" for the change itself.
type Command struct {
	Verb        Verb   `json:"verb"`
	Kind        string `json:"-"`
	BreakGlass  bool   `json:"break_glass,omitempty"`
	Signed      bool   `json:"signed,omitempty"` // with a signature, of which nobody knows yet whether it is good
	Fingerprint string `json:"fingerprint,omitempty"`
	Reason      string `json:"reason,omitempty"` // one line of visible characters
}

// Decision is what a command decides. It is false for what only looks
// like a command.
func (c Command) Decision() (ledger.Decision, bool) {
	d, ok := map[Verb]ledger.Decision{VerbApprove: ledger.Approve, VerbDeny: ledger.Deny}[c.Verb]
	return d, ok
}

// RequestKind is the kind of the request that a command about the patch answers.
func (c Command) RequestKind() string {
	if c.BreakGlass {
		return policy.KindBreakGlass
	}
	for _, kind := range shortKinds {
		if isOf(kind, c.Fingerprint) {
			return kind
		}
	}
	return policy.KindFileChange
}

// shortKinds are the kinds that an approval without a fingerprint can name.
var shortKinds = []string{policy.KindSecret, policy.KindProtected}

const (
	breakGlassFlag = "--break-glass "
	reasonLimit    = 500 // characters
)

// ParseCommand reads the command that a comment is, and reports whether it is one:
//
//	/approve <fingerprint>
//	/approve --break-glass <fingerprint> <reason>
//	/deny <fingerprint>[ <reason>]
//	/approve
//	/approve secret
//	/approve protected
//	/deny[ <reason>]
//
// and, signed by somebody's own key, as SignedLine writes it,
//
//	/approve <fingerprint>[ <fingerprint>…] sig:<signature>
//	/approve --break-glass <fingerprint> sig:<signature>
//	/deny <fingerprint>[ <fingerprint>…] sig:<signature>
//
// or as a block: the same line without its signature, which follows as a
// fenced block. Either must be all of the comment, but for an LF or CR LF at its end; the
// reason is in the signature. This is the first of the commands that the line is; ParseSigned
// has all of them. A denial whose signature cannot be read is one without; an approval is
// none then.
//
// A fingerprint is patchset: and 64 lower-case hexadecimal digits, with secret:
// or protected: before it where it is of that kind.
//
// Only the very first line is read, up to its LF or CR LF. What stands there must
// be the command to the byte: nothing before it, single spaces, ASCII, and after
// what is approved nothing at all, not even a space. Only what follows /deny and
// its space is read with more patience, as to overlook a denial is worse.
func ParseCommand(body string) (Command, bool) {
	if _, commands, err := ParseSigned(body); err == nil {
		return commands[0], true
	}
	verb, rest, more := strings.Cut(firstLine(body), " ")
	switch verb {
	case "/approve":
		if HasBlock(body) {
			return Command{}, false
		}
		if named, ok := strings.CutPrefix(rest, breakGlassFlag); ok {
			return breakGlass(named)
		}
		if i := slices.IndexFunc(shortKinds, func(kind string) bool { return rest == policy.Word(kind) }); i >= 0 {
			return Command{Verb: VerbApprove, Kind: shortKinds[i]}, true
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
	}
	return Command{}, false
}

// signatureMark begins the word of a command that is its signature.
const signatureMark = "sig:"

// SignedLine is the command that a person posts who has signed a decision: verb and
// fingerprints for those who read it, and the signature, which has all of it.
func SignedLine(s Signature) string {
	return CommandOf(s.Statement) + " " + signatureMark + s.String()
}

// CommandOf is what a signed decision says to those who read it.
func CommandOf(s SignedDecision) string {
	words := []string{"/" + string(s.Decision)}
	if s.Decision == BreakGlass {
		words = []string{"/approve", strings.TrimSpace(breakGlassFlag)}
	}
	return strings.Join(append(words, s.Fingerprints...), " ")
}

// ParseSigned reads a comment that is a SignedLine or a signed block and nothing else: the
// signature, which nobody has verified, and what its statement decides, fingerprint by
// fingerprint.
func ParseSigned(body string) (Signature, []Command, error) {
	s, err := signatureOf(body)
	if err != nil {
		return Signature{}, nil, err
	}
	c := Command{Verb: Verb(s.Statement.Decision), Signed: true, Reason: s.Statement.Reason}
	if s.Statement.Decision == BreakGlass {
		c.Verb, c.BreakGlass = VerbApprove, true
	}
	var out []Command
	for _, c.Fingerprint = range s.Statement.Fingerprints {
		out = append(out, c)
	}
	return s, out, nil
}

func signatureOf(body string) (Signature, error) {
	line := firstLine(body)
	_, text, found := strings.Cut(line, " "+signatureMark)
	switch {
	case !found && HasBlock(body):
		return blockOf(body)
	case !found:
		return Signature{}, errors.New("there is no signature")
	case len(strings.TrimSuffix(strings.TrimSuffix(body, "\n"), "\r")) != len(line):
		return Signature{}, errors.New("a signed command must be all of the comment")
	}
	s, err := ParseSignature(text)
	if err == nil && SignedLine(s) != line {
		err = errNotSigned
	}
	return s, err
}

var errNotSigned = errors.New("the line does not say what was signed")

// blockOf reads a signed block, whose lines all end with LF, or all with CR LF, as the
// forge's form sends them.
func blockOf(body string) (Signature, error) {
	text := strings.ReplaceAll(body, "\r\n", "\n")
	if text != body && strings.ReplaceAll(text, "\n", "\r\n") != body {
		return Signature{}, errors.New("some of its lines end in LF and others in CR LF")
	}
	text = strings.TrimSuffix(text, "\n")
	line, block, _ := strings.Cut(text, "\n")
	s, err := ParseBlock(block)
	if err == nil && CommandOf(s.Statement) != line {
		err = errNotSigned
	}
	return s, err
}

// breakGlass reads what follows its flag: the fingerprint, and a reason that is no signature.
func breakGlass(rest string) (Command, bool) {
	named, reason, _ := strings.Cut(rest, " ")
	c := Command{Verb: VerbApprove, BreakGlass: true, Fingerprint: named, Reason: ledger.OneLine(reason, reasonLimit)}
	if !isFingerprint(named) || c.Reason == "" || reason[0] == ' ' || strings.HasPrefix(reason, signatureMark) {
		return Command{}, false
	}
	return c, true
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

// HasMark reports whether a text seems to be meant to have a signature, right or wrong.
func HasMark(s string) bool { return HasBlock(s) || strings.Contains(firstLine(s), " sig:") }

// LooksLike reports whether the first line seems to be meant as a command, right or
// wrong, so that its author can be told why it counts for nothing.
func LooksLike(body string) bool {
	line := strings.ToLower(strings.Map(shown, firstLine(body)))
	plain := strings.TrimLeft(line, " \t>`*_~-#\\\"'")
	for _, start := range []string{"/approve", "/deny"} {
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
