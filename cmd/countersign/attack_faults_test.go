package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// faults are the ways in which a request goes wrong, and at which request of a
// settle that applies. The suite of all forges has one that is killed after each.
var faults = map[string]struct {
	fault githubtest.Fault
	at    int
}{
	"403":                 {githubtest.Fault{Status: 403}, 12},
	"404":                 {githubtest.Fault{Status: 404}, 13},
	"429":                 {githubtest.Fault{Kind: githubtest.SecondaryLimit, Status: 429, Times: 4}, 8},
	"500":                 {githubtest.Fault{Status: 500}, 6},
	"500, for long":       {githubtest.Fault{Status: 500, Times: -1}, 4},
	"500 after it did it": {githubtest.Fault{Status: 500, After: true}, 22},
	"cut":                 {githubtest.Fault{Kind: githubtest.Cut}, 9},
	"cut after it did it": {githubtest.Fault{Kind: githubtest.Cut, After: true}, 30},
	"truncated":           {githubtest.Fault{Kind: githubtest.Truncate}, 7},
	"half":                {githubtest.Fault{Kind: githubtest.Half}, 10},
	"nothing":             {githubtest.Fault{Kind: githubtest.Body, Text: "{}"}, 5},
	"html":                {githubtest.Fault{Kind: githubtest.Body, Text: "<html>"}, 3},
	"a page is empty":     {githubtest.Fault{Kind: githubtest.EmptyPage}, 11},
}

// Whatever request fails: nothing but the approved bytes gets to the branch, no
// check passes that should not, and the next settle puts everything right.
func TestT61FaultWhileApplying(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	for name, f := range faults {
		if !everything() && name != "429" && name != "500 after it did it" {
			continue
		}
		a.applies(name, f.fault, f.at)
	}
	a.audits()
}

// applies has a fault at a request of a settle.
func (a *attack) applies(name string, fault githubtest.Fault, n int) {
	a.Helper()
	a.closes()
	text := fmt.Sprintf("hello, %s %d", name, n)
	a.proposes(text)
	a.says("ada", "/approve "+a.fingerprint)
	fault.Skip = n - 1
	a.fails(fault)
	if made := len(a.s.Requests()); made < n {
		a.Errorf("%s at request %d: there are only %d", name, n, made)
	}
	a.sane(fmt.Sprintf("%s at request %d", name, n))
	a.settle(0, "--no-gate")
	if got := a.s.File(site, "topic", "greet.txt"); a.status(a.tx) != "completed" || got != "one\n"+text+"\nthree\n" {
		a.Fatalf("%s at request %d: %s, greet.txt is %q", name, n, a.status(a.tx), got)
	}
	if commits := a.s.Git(site, "rev-list", "--count", a.tip+"..refs/heads/topic"); commits != "1" {
		a.Errorf("%s at request %d: %s commits", name, n, commits)
	}
}

// fails settles with a fault.
func (a *attack) fails(f githubtest.Fault) {
	a.Helper()
	a.s.ResetRequests()
	a.s.Fail(f)
	code, stdout, stderr := a.run("settle", "--json", "--pr", fmt.Sprint(a.pr), "--no-gate")
	a.s.Heal()
	if code != 0 && stderr == "" {
		a.Errorf("exit code %d, and nothing is told: %s", code, stdout)
	}
}

// sane fails the test if more was done than was approved, or told than was done.
func (a *attack) sane(where string) {
	a.Helper()
	applied := a.s.Ref(site, "refs/heads/topic") != a.tip
	if applied && a.s.Git(site, "rev-parse", "refs/heads/topic^") != a.tip {
		a.Errorf("%s: the branch is not where it should be", where)
	}
	for _, c := range a.s.CheckRuns(site, "") {
		if c.Conclusion == "success" && strings.HasSuffix(c.Name, strings.TrimPrefix(a.fingerprint, "patchset:")[:12]) && !applied {
			a.Errorf("%s: the check %s passes", where, c.Name)
		}
	}
}

// A denial somewhere in the conversation is never overlooked because an answer
// was not whole.
func TestT61FaultWhileReadingADenial(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	a.closes()
	deny := map[string]func(){
		"comment": func() { a.says("bob", "/deny "+a.fingerprint) },
		"thread":  func() { a.answers("bob", "/deny no") },
		"review":  func() { a.reviews("bob", "COMMENTED", "/deny "+a.fingerprint) },
	}
	line := 0
	for where, say := range deny {
		for name, f := range unread {
			if f.by != where && !everything() {
				continue
			}
			line++
			a.proposes(fmt.Sprintf("hello, %d", line))
			a.says("ada", "/approve "+a.fingerprint)
			say()
			a.fails(f.fault)
			a.sane(where + ", " + name)
			if got := a.s.Ref(site, "refs/heads/topic"); got != a.tip {
				t.Errorf("%s, %s: the denied patch was applied", where, name)
			}
			a.run("settle", "--pr", "1", "--no-gate")
			if got := a.status(a.tx); got != "denied" {
				t.Errorf("%s, %s: %s", where, name, got)
			}
		}
	}
	a.audits()
}

// unread are answers in which a part of the conversation is missing, and the
// place of the denial that is tried by default.
var unread = map[string]struct {
	by    string
	fault githubtest.Fault
}{
	"none by REST":    {"comment", githubtest.Fault{Kind: githubtest.EmptyPage, Path: "/api/v3/repos/acme/site/issues", Times: -1}},
	"none by GraphQL": {"thread", githubtest.Fault{Kind: githubtest.EmptyPage, Contains: "reviewThreads", Times: -1}},
	"the last page":   {"", githubtest.Fault{Kind: githubtest.LastPage, Times: -1}},
	"half":            {"", githubtest.Fault{Kind: githubtest.Half, Contains: "reviewThreads", Times: -1}},
	"no reviews":      {"", githubtest.Fault{Kind: githubtest.GraphQLPartial, Text: "repository.pullRequest.reviews", Contains: "reviewThreads", Times: -1}},
	"no threads":      {"", githubtest.Fault{Kind: githubtest.GraphQLPartial, Text: "repository.pullRequest.reviewThreads", Contains: "reviewThreads", Times: -1}},
	"no comments":     {"", githubtest.Fault{Kind: githubtest.GraphQLPartial, Text: "repository.pullRequest.comments", Contains: "reviewThreads", Times: -1}},
	"no data":         {"review", githubtest.Fault{Kind: githubtest.Body, Text: `{"data":{"repository":{"pullRequest":{}}}}`, Contains: "reviewThreads", Times: -1}},
}

// A denial on the second page; the suite of all forges has it in each place.
func TestT62DenialBeyondTheFirstPage(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	a.says("ada", "/approve "+a.fingerprint)
	for i := range 105 {
		a.answers("eve", fmt.Sprint("reply ", i))
	}
	a.answers("bob", "/deny no")
	for _, f := range []githubtest.Fault{{Kind: githubtest.LastPage, Times: -1}, {Kind: githubtest.EmptyPage, Skip: 7, Times: -1}} {
		a.fails(f)
		a.untouched()
	}
	a.isDenied()
}

// Every read by Git fails once, and the first push: the settle goes on as if none had. One
// that is refused is asked once.
func TestT61GitFaults(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	a.says("ada", "/approve "+a.fingerprint)
	a.clone()
	for n := range 100 { // each takes the first request that follows one which went well
		a.s.Fail(githubtest.Fault{Path: "/acme/site.git/info/refs", Status: 502, Skip: n})
		a.s.Fail(githubtest.Fault{Path: "/acme/site.git/git-upload-pack", Status: 502, Skip: n})
	}
	a.s.Fail(githubtest.Fault{Path: "/acme/site.git/git-receive-pack", Status: 502})
	a.settle(0, "--no-gate")
	a.s.Heal()
	if got := a.status(a.tx); got != "completed" {
		t.Errorf("%s is %s", a.tx, got)
	}
	for _, status := range []int{401, 403, 404} {
		a.clone()
		a.s.ResetRequests()
		a.s.Fail(githubtest.Fault{Path: "/acme/site.git/", Status: status, Times: -1})
		code, _, stderr := a.run("settle", "--pr", "1", "--no-gate")
		a.s.Heal()
		asked := 0
		for _, r := range a.s.Requests() {
			if strings.HasPrefix(r.Path, "/acme/site.git/") {
				asked++
			}
		}
		if code != console.ExitIO || asked != 1 {
			t.Errorf("%d: exit code %d after %d requests: %s", status, code, asked, stderr)
		}
	}
	a.audits()
}
