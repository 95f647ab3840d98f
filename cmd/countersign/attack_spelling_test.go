package main

import (
	"strings"
	"testing"
)

const (
	inexact = "is not an exact command"
	below   = "its command is not the first line"
	unbound = "is not in the thread of the request"
)

// TestT07T13T14Spellings: what is no exact command is told, and counts neither as a comment nor in the thread, where a bare
// line would. Package approval has the table of them.
func TestT07T13T14Spellings(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	digits, line := strings.TrimPrefix(a.fingerprint, "patchset:"), "/approve "+a.fingerprint
	spellings := []string{
		"/approve patchset:" + digits[:12], "/approve patchset:" + strings.ToUpper(digits), line + " ", line + "\r\r\n", "/approve\t" + a.fingerprint, a.fingerprint,
		"> " + line, "```\n" + line + "\n```", "\t" + line, "<!--\n" + line + "\n-->\nlooks good", "\n" + line, "-- \n" + line,
		"/approve pаtchset:" + digits /* Cyrillic a */, "\ufeff" + line, line + "\u202e", line + "\x00", "∕approve patchset:" + digits, // division slash
	}
	for _, body := range spellings {
		a.says("ada", body)
	}
	out := a.waits(inexact, below)
	if n := len(out.Transactions[0].Verdict.Decisions); n != len(spellings) {
		t.Errorf("%d of %d are told", n, len(spellings))
	}
	for _, body := range []string{"/approve patchset:" + digits[:12], "/approve .", "/APPROVE", "> /approve", "```\n/approve\n```"} {
		a.answers("ada", body)
	}
	a.waits(inexact, below)
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
