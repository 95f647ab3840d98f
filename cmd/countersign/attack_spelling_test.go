package main

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

const (
	inexact = "is not an exact command"
	below   = "its command is not the first line"
	unbound = "is not in the thread of the request"
)

func TestT07Inexact(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "")
	digits := strings.TrimPrefix(a.fingerprint, "patchset:")
	spellings := []string{
		"/approve patchset:" + digits[:12], "/approve patchset:" + strings.ToUpper(digits), "/approve " + digits, "/approve patchset:" + digits + "0",
		"/approve " + a.fingerprint + " ", "/approve " + a.fingerprint + " please", "/approve " + a.fingerprint + " --break-glass",
		"/approve  " + a.fingerprint, "/approve\t" + a.fingerprint, " /approve " + a.fingerprint, "/Approve " + a.fingerprint, "/approved " + a.fingerprint,
		"/approve: " + a.fingerprint, "/approve " + a.fingerprint + "\r\r\n", "/approve " + a.fingerprint + "\u2028", "/approve sha256:" + digits,
		"/approve --break-glass " + a.fingerprint, "approve " + a.fingerprint, a.fingerprint, "/approve PATCHSET:" + digits, "/ approve " + a.fingerprint,
	}
	for _, body := range spellings {
		a.says("ada", body)
	}
	out := a.waits(inexact)
	if n := len(out.Transactions[0].Verdict.Decisions); n != len(spellings) {
		t.Errorf("%d of %d are told", n, len(spellings))
	}
	// The same in the thread, where a bare line counts.
	for _, body := range []string{"/approve patchset:" + digits[:12], "/approve .", "/approve " + strings.ToUpper(a.fingerprint), "/APPROVE"} {
		a.answers("ada", body)
	}
	a.waits(inexact)
	a.approves("ada")
}

func TestT07BareOutsideOfTheThread(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "")
	a.says("ada", "/approve")
	a.reviews("ada", "APPROVED", "/approve")
	a.s.ReviewComment(githubtest.NewComment{Repository: site, Number: a.pr, By: "ada", Body: "/approve", Path: "feature.txt", Line: 1})
	a.waits(unbound)
	a.reviews("ada", "APPROVED", "")
	a.waits("a green review does not name the patch")
	a.answers("ada", "/approve") // and there it does
	a.settle(0, "--no-gate")
}

func TestT13NotTheFirstLine(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "")
	line := "/approve " + a.fingerprint
	for _, body := range []string{
		"> " + line, "> " + line + "\n\nno!", "```\n" + line + "\n```", "    " + line, "\t" + line, "`" + line + "`",
		"<!--\n" + line + "\n-->\nlooks good", "<!-- " + line + " -->", "<details>\n" + line + "\n</details>", "I would never\n" + line,
		"\n" + line, "* " + line, "# " + line, "~~" + line + "~~", "\\" + line,
		"Sounds good\n\nOn Mon, Jan 5, 2026 at 9:00 bob wrote:\n> please comment\n" + line + "\n", "-- \n" + line,
	} {
		a.says("ada", body)
	}
	a.waits(inexact, below)
	a.answers("ada", "> /approve")
	a.answers("ada", "```\n/approve\n```")
	a.waits(inexact)
	a.approves("ada")
}

func TestT14LookAlikes(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "")
	digits := strings.TrimPrefix(a.fingerprint, "patchset:")
	for _, body := range []string{
		"/approve pаtchset:" + digits,                                                                                                         // Cyrillic a
		"/approve patchset\u200b:" + digits,                                                                                                   // zero width space
		"/approve \u2066patchset:" + digits,                                                                                                   // bidi isolate
		"\ufeff/approve patchset:" + digits,                                                                                                   // byte order mark
		"/approve\u00a0patchset:" + digits,                                                                                                    // no-break space
		"/approve patchset:" + digits + "\u202e",                                                                                              // right to left
		"/approve patchset:" + digits + "\x00", "/approve patchset:" + strings.Replace(digits, digits[:1], string(rune(digits[0])+0xfee0), 1), // full width
		"∕approve patchset:" + digits, // division slash
	} {
		a.says("ada", body)
	}
	a.waits(inexact)
	a.approves("ada")
}

// What does not print is shown where people decide, in no line as itself.
func TestT14HiddenInTheDiff(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.propose(strings.Replace(greetFix, "+hello, world", "+if role != \"admin\u202e\u2066// \u2069\u2066\" {\u200b", 1))
	request, comment := h.s.ReviewComments(site, h.pr)[0].Body, h.comment()
	for name, text := range map[string]string{"request": request, "comment": comment, "check": h.s.CheckRuns(site, "")[0].Summary} {
		if strings.ContainsAny(text, "\u202e\u2066\u2069\u200b") {
			t.Errorf("the %s has hidden characters:\n%q", name, text)
		}
	}
	for _, want := range []string{"202e", "2066", "200b"} {
		if !strings.Contains(strings.ToLower(request), want) {
			t.Errorf("the request does not show U+%s:\n%s", want, request)
		}
	}
}
