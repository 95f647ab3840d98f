package main

import (
	"fmt"
	"testing"
)

// The most requests that GitHub's API is asked (issue 7, Numbers; what there is
// in docs/benchmarks.md is printed here).
func TestForgeNumbers(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	a.says("ada", "/approve "+a.fingerprint)
	a.clone() // as a job begins
	a.s.ResetRequests()
	a.settle(0, "--no-gate")
	a.within("settle of one approved transaction", 25, 6)

	a.proposes("hello, all")
	for i := range 100 {
		a.says("eve", fmt.Sprint("comment ", i))
		a.reviews("eve", "COMMENTED", fmt.Sprint("review ", i))
		a.answers("eve", fmt.Sprint("reply ", i))
	}
	a.says("ada", "/approve "+a.fingerprint)
	a.clone()
	a.s.ResetRequests()
	a.does("gate", a.tx)
	a.within("gate with 300 comments of three kinds", 12, 0)

	g := newGuard(t, "")
	g.reviews("ada", "APPROVED", "")
	g.clone()
	g.s.ResetRequests()
	g.settle(0)
	g.within("settle of an approved pull request", 25, 6)
}

// within prints how many requests there were, and fails the test if there were
// more to the API than these.
func (a *attack) within(what string, requests, writes int) {
	a.Helper()
	n := a.s.Count()
	fmt.Printf("numbers: %s: %d requests to the API (at most %d), %d of them writes (at most %d); %d of Git\n", what, n.API, requests, n.Writes, writes, n.Git)
	if n.API > requests || n.Writes > writes {
		for _, r := range a.s.Requests() {
			a.Logf("%s %s %s", r.Kind, r.Method, r.Path)
		}
		a.Errorf("%s: %+v", what, n)
	}
}
