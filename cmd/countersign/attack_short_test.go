package main

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

const protectsGreeting = "protected: [{paths: [/greet.txt], required: 1}]\n"

// T97 In the thread of its own request /approve protected is that approval and nothing else: what
// is said elsewhere, also below the request of what it superseded, with other words, or below a request that was edited is none.
func TestT97ShortAnswers(t *testing.T) {
	t.Parallel()
	a := newAttack(t, protectsGreeting)
	request := a.s.ReviewComments(site, a.pr)[0] // of a transaction that is superseded
	a.proposes("hello, all")
	a.says("ada", "/approve "+a.fingerprint) // so that each of the others would be enough
	a.says("ada", "/approve protected")
	for _, slip := range []string{"/approve protected please", "/approve PROTECTED", "> /approve protected", "/approve protected secret", "Yes.\n\n/approve protected"} {
		a.answers("ada", slip)
	}
	a.answers("ada", "/approve secret") // which nobody asked for
	forged := a.s.ReviewComment(githubtest.NewComment{Repository: site, Number: a.pr, By: "ada", Body: request.Body, Path: "feature.txt"}).ID
	a.answersTo(forged, "ada", "/approve protected")
	a.answersTo(request.ID, "ada", "/approve protected")
	a.waits("is not in the thread of the request", "is not an exact command", "is not asked for")
	if title := a.check("countersign/"+strings.TrimPrefix(a.fingerprint, "patchset:")[:12], a.tip).Title; title != "waiting: protected path (0 of 1)" {
		t.Errorf("the check's title is %q", title)
	}
	a.answers("eve", "/approve protected")
	a.waits("has read permission, write needed")
	a.answers("ada", "/approve protected")
	a.settle(0, "--no-gate")
	if got := a.s.File(site, "topic", "greet.txt"); got != "one\nhello, all\nthree\n" {
		t.Errorf("greet.txt is %q", got)
	}
	a.audits()
}

// T97 A request that was edited binds no short answer, however it is called; what it bound before it
// was edited is bound no more.
func TestT97RequestEdited(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, protectsGreeting)
	request := a.s.ReviewComments(site, a.pr)[0]
	a.answers("ada", "/approve protected")
	a.waits()
	a.s.Edit(request.ID, "bob", strings.ReplaceAll(request.Body, "hello, world", "hello"))
	a.says("ada", "/approve "+a.fingerprint)
	a.waits("the request it answers was changed after it was posted")
	a.answers("ada", "/approve protected")
	a.waits("the request it answers was changed after it was posted")
	a.says("ada", "/approve protected:"+a.fingerprint) // the whole line needs no thread
	a.settle(0, "--no-gate")
	a.audits()
}
