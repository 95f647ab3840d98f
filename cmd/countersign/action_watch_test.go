package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// TestActionWatch: the stage watch keeps one issue about the default branch, with a token
// that reads the code and writes issues. It is opened, added to and closed, and says that an
// audit failed; what a commit's author wrote is text there (T14, T71).
func TestActionWatch(t *testing.T) {
	t.Parallel()
	h := openHub(t, false)
	push := func(message, file string) {
		h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "eve", Message: message, Files: map[string]string{file: message}})
	}
	run := func(want, issues int, open bool, says ...string) githubtest.Issue {
		t.Helper()
		h.clone()
		h.event("push", nil)
		h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, "contents:read", "issues:write")
		inputs := slices.DeleteFunc(slices.Clone(says), func(s string) bool { return !strings.HasPrefix(s, "since=") })
		says = slices.DeleteFunc(says, func(s string) bool { return strings.HasPrefix(s, "since=") })
		code, _, printed := h.step("watch", inputs...)
		all := h.s.Issues(site)
		if code != want || len(all) != issues || all[issues-1].Open != open {
			t.Fatalf("exit code %d, issues %+v\n%s", code, all, printed)
		}
		last := all[issues-1]
		text := last.Title + "\n" + last.Body + strings.Join(last.Comments, "\n")
		for _, words := range says {
			if !strings.Contains(text, words) {
				t.Errorf("the issue lacks %q:\n%s", words, text)
			}
		}
		if strings.ContainsAny(text, "\x1b") || strings.Contains(text, "@ada") || strings.Contains(text, "<img") || strings.Contains(text, "](http://evil") {
			t.Errorf("foreign text does something:\n%q", text)
		}
		return last
	}
	run(cli.ExitRefused, 1, true, "main could not be audited", "there is no ledger here")
	if code, _, printed := h.action("run", "patch="+h.write("fix.patch", greetFix), "token="+h.token); code != 0 {
		t.Fatalf("run: %d\n%s", code, printed)
	}
	run(0, 1, false, "Something accounts for each commit")
	good := h.s.Git(site, "rev-parse", "refs/heads/main")
	ledger := h.s.Git(site, "rev-parse", "refs/agent/ledger")

	push("x \x1b[2J @ada <img src=x> [a](http://evil.example) #1", "we`ird @ada.txt")
	run(cli.ExitFailed, 2, true, "commits of main that nothing accounts for", "**1 commit**", "no transaction proposes this change")
	push("y", "y.txt")
	one := run(cli.ExitFailed, 2, true, "**2 commits**", "Nothing accounts for 1 commit more")
	again := run(cli.ExitFailed, 2, true)
	if again.Body != one.Body || len(again.Comments) != 1 {
		t.Errorf("an audit that found nothing new: %+v", again)
	}

	h.s.Git(site, "update-ref", "refs/agent/ledger", h.s.Git(site, "-c", "user.name=Eve", "-c", "user.email=eve@localhost", "commit-tree", "-m", "forged", "-p", "refs/agent/ledger", "refs/agent/ledger^{tree}"))
	run(cli.ExitFailed, 2, true, "main could not be audited", "does not verify", "Before that, nothing accounted for 2 commits")
	h.s.Git(site, "update-ref", "refs/agent/ledger", ledger)

	h.s.Git(site, "update-ref", "refs/heads/main", good)
	last := run(0, 2, true, "does not find any more")
	h.s.EditIssue(site, last.Number, last.Body, false)
	run(0, 2, false)
	push("z", "z.txt")
	run(cli.ExitFailed, 2, true, "z", "Nothing accounts for 1 commit more")
	since := h.s.Git(site, "rev-parse", "refs/heads/main")
	run(cli.ExitRefused, 2, true, "takes a whole commit id", "since=1d")
	run(0, 2, false, "0 commits since [", "since="+since)
	push("after", "after.txt")
	run(cli.ExitFailed, 3, true, "after", "since="+since)

	h.s.Fail(githubtest.Fault{Path: "/api/v3/repos/" + site + "/issues", Status: 500, Times: 100})
	h.clone()
	h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, "contents:read", "issues:write")
	if code, _, printed := h.step("watch"); code == 0 || !strings.Contains(printed, "reading the open issues") {
		t.Errorf("a forge that fails: exit code %d\n%s", code, printed)
	}
}
