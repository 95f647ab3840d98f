package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

func TestT16SameHead(t *testing.T) {
	t.Parallel()
	a := newGuard(t, "gate: {bases: [main, release]}\n")
	a.s.Git(site, "update-ref", "refs/heads/release", a.s.Ref(site, "refs/heads/main"))
	a.s.Git(site, "update-ref", "refs/heads/play", a.s.Ref(site, "refs/heads/main"))
	a.pushes("ada", "release", "other.txt", "release\n")
	open := func(base string) int {
		return a.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "topic", Base: base, Title: base}).Number
	}
	first, second := a.pr, open("release")
	open("play") // nobody guards it
	a.reviews("ada", "APPROVED", "")
	a.guards(asks)
	if got := a.check("countersign", a.s.Pull(site, first).Head).Summary; !strings.Contains(got, fmt.Sprint("pull request ", second)) {
		t.Errorf("the sibling is not told:\n%s", got)
	}
	a.pr = second
	a.guards(asks)
	a.says("ada", "/approve "+a.fingerprint) // the second's own
	a.guards(passes)
	a.pr = first
	a.guards(passes)
	// A sibling that comes later takes it back, at the settle of either.
	a.s.Retarget(site, second+1, "release")
	a.guards(asks)
	a.pr = second + 1
	a.guards(asks)
	a.s.ClosePull(site, a.pr)
	a.pr = first
	a.guards(passes)
	a.audits()
}

func TestT16SameHeadInAFork(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "")
	a.s.User("carol")
	a.s.Fork(site, "carol/site")
	a.s.Git("carol/site", "update-ref", "refs/heads/copy", a.s.Pull(site, a.pr).Head)
	a.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "carol", Head: "copy", HeadRepository: "carol/site"})
	a.reviews("ada", "APPROVED", "")
	a.guards(asks)
	a.pr++
	a.guards(asks)
	a.s.ClosePull(site, a.pr)
	a.pr--
	a.guards(passes)
}

// The approval of a pull request to one branch is not one to another.
func TestT16Retargeted(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "gate: {bases: [main, release]}\n")
	a.s.Git(site, "update-ref", "refs/heads/release", a.s.Ref(site, "refs/heads/main"))
	a.pushes("ada", "release", "feature.txt", "something else\n")
	a.s.Git(site, "update-ref", "refs/heads/mixed", a.s.Ref(site, "refs/heads/release"))
	a.reviews("ada", "APPROVED", "")
	a.guards(passes)
	a.s.Git(site, "update-ref", "refs/heads/topic", a.pushes("bob", "mixed", "feature.txt", "feature\n"))
	a.s.Retarget(site, a.pr, "release")
	a.happens(githubtest.Event{Name: "pull_request_target", Action: "edited", Number: a.pr})
	a.guards(asks)
}

// A review of the diff to one branch does not count for the larger diff to
// another, though all is in one second: the forge's times have no fractions.
func TestT16RetargetedWithinTheSecond(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "gate: {bases: [main, dev]}\n")
	a.s.Git(site, "update-ref", "refs/heads/dev", a.s.Ref(site, "refs/heads/topic"))
	a.pushes("bob", "topic", "more.txt", "more\n")
	a.s.Retarget(site, a.pr, "dev")
	a.happens(githubtest.Event{Name: "pull_request_target", Action: "edited", Number: a.pr})
	a.guards(asks)
	a.stop(time.Now().Add(time.Minute).Truncate(time.Second))
	a.s.Review(githubtest.NewComment{Repository: site, Number: a.pr, By: "ada", State: "APPROVED"})
	a.guards(passes)
	a.s.Retarget(site, a.pr, "main")
	a.guards(asks, "is from before this was proposed")
}

// Another workflow with the same token says that all is well.
func TestT60ForgedCheck(t *testing.T) {
	t.Parallel()
	a := newGuard(t, "")
	head := a.s.Pull(site, a.pr).Head
	client, err := github.New(github.Options{APIURL: a.s.API(), Repository: site, Token: a.token})
	check(t, err)
	for _, name := range []string{"countersign", "countersign/" + strings.TrimPrefix(a.fingerprint, "patchset:")[:12]} {
		if _, err := forge.Publish(t.Context(), client, head, forge.Check{Name: name, Title: "approved", Summary: "approved", Status: "completed", Conclusion: "success"}); err != nil {
			t.Fatal(err)
		}
	}
	if code, stdout, _ := a.run("gate", a.tx); code != console.ExitPending {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	a.guards(asks)
	for _, c := range a.s.CheckRuns(site, head) {
		if c.Conclusion == "success" {
			t.Errorf("%s passes", c.Name)
		}
	}
}

func TestT67Advisory(t *testing.T) {
	t.Parallel()
	a := newGuard(t, "")
	head := a.s.Pull(site, a.pr).Head
	if got := a.check("countersign", head); !strings.Contains(got.Summary, "Advisory") || !strings.Contains(got.Summary, "expected source") {
		t.Errorf("%s", got.Summary)
	}
	a.s.Bot("countersign-app[bot]")
	granted := map[string]string{"contents": "write", "pull_requests": "write", "issues": "write", "checks": "write", "actions": "read"}
	a.env["INPUT_TOKEN"] = a.s.AppToken(githubtest.AppToken{Bot: "countersign-app[bot]", Repositories: []string{site}, Permissions: granted})
	a.run("settle", "--pr", "1", "--dedicated")
	got := a.check("countersign", head)
	if strings.Contains(got.Summary, "Advisory") || got.App != "countersign-app[bot]" || got.Conclusion != asks {
		t.Errorf("%+v", got)
	}
}
