package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// TestActionWatch: the stage watch keeps one issue about the default branch, with a token
// that reads the code and writes issues. It is opened, added to and closed, and says that an
// audit failed; what a commit's author wrote is text there (T14, T71).
func TestActionWatch(t *testing.T) {
	long(t)
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
	run(console.ExitRefused, 1, true, "main could not be audited", "there is no ledger here")
	if code, _, printed := h.action("run", "patch="+h.write("fix.patch", greetFix), "token="+h.token); code != 0 {
		t.Fatalf("run: %d\n%s", code, printed)
	}
	run(0, 1, false, "Something accounts for each commit")
	good := h.s.Git(site, "rev-parse", "refs/heads/main")
	ledger := h.s.Git(site, "rev-parse", "refs/agent/ledger")

	push("x \x1b[2J @ada <img src=x> [a](http://evil.example) #1", "we`ird @ada.txt")
	run(console.ExitFailed, 2, true, "commits of main that nothing accounts for", "**1 commit**", "no transaction proposes this change")
	push("y", "y.txt")
	one := run(console.ExitFailed, 2, true, "**2 commits**", "Nothing accounts for 1 commit more")
	again := run(console.ExitFailed, 2, true)
	if again.Body != one.Body || len(again.Comments) != 1 {
		t.Errorf("an audit that found nothing new: %+v", again)
	}

	h.s.Git(site, "update-ref", "refs/agent/ledger", h.s.Git(site, "-c", "user.name=Eve", "-c", "user.email=eve@localhost", "commit-tree", "-m", "forged", "-p", "refs/agent/ledger", "refs/agent/ledger^{tree}"))
	run(console.ExitFailed, 2, true, "main could not be audited", "does not verify", "Before that, nothing accounted for 2 commits")
	h.s.Git(site, "update-ref", "refs/agent/ledger", ledger)

	h.s.Git(site, "update-ref", "refs/heads/main", good)
	last := run(0, 2, true, "does not find any more")
	h.s.EditIssue(site, last.Number, last.Body, false)
	run(0, 2, false)
	push("z", "z.txt")
	run(console.ExitFailed, 2, true, "z", "Nothing accounts for 1 commit more")
	since := h.s.Git(site, "rev-parse", "refs/heads/main")
	run(console.ExitRefused, 2, true, "takes a whole commit id", "since=1d")
	run(0, 2, false, "0 commits since [", "since="+since)
	push("after", "after.txt")
	run(console.ExitFailed, 3, true, "after", "since="+since)

	h.s.Fail(githubtest.Fault{Path: "/api/v3/repos/" + site + "/issues", Status: 500, Times: 100})
	h.clone()
	h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, "contents:read", "issues:write")
	if code, _, printed := h.step("watch"); code == 0 || !strings.Contains(printed, "reading the open issues") {
		t.Errorf("a forge that fails: exit code %d\n%s", code, printed)
	}
}

// TestT79WatchTrust: the stage watch holds the ledger to the witnesses and the keys that the default
// branch names. What is checked out says nothing, and what is named and missing is a failure.
func TestT79WatchTrust(t *testing.T) {
	long(t)
	t.Parallel()
	h := openHub(t, false)
	log, north, eve := newNoteParty(t, "github.com/acme/site", false), newNoteParty(t, "north.example", true), newNoteParty(t, "eve.example", false)
	names := fmt.Sprintf("log %s\n%s", log, north.serve(t, log))
	signers := func(p noteParty) string {
		key, err := ssh.NewPublicKey(p.private.Public())
		check(t, err)
		return "ci@example.org namespaces=\"git\" " + string(ssh.MarshalAuthorizedKey(key))
	}
	const checkpoints, keys, protects = "refs/agent/ledger-checkpoints", ".github/ledger-signers", "protected: [{paths: [/.github/ledger-signers]}]\n"
	since := ""
	branch := func(name, rules string, files map[string]string) {
		files[".github/countersign.yml"] = rules
		h.s.Push(githubtest.NewCommit{Repository: site, Branch: name, By: "ada", Message: "policy", Files: files})
		since = h.s.Git(site, "rev-parse", "refs/heads/main")
	}
	run := func(what string, want int, says string, inputs ...string) {
		t.Helper()
		h.clone()
		h.event("push", nil)
		h.git(h.dir, "checkout", "-q", "origin/topic") // whose Policy requires nothing, and whose keys are others'
		h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, "contents:read", "issues:write")
		code, _, printed := h.step("watch", append(inputs, "since="+since)...)
		all := h.s.Issues(site)
		text := printed
		if len(all) > 0 {
			text += all[len(all)-1].Body
		}
		if code != want || !strings.Contains(text, says) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", what, code, want, says, text)
		}
	}
	branch("topic", "version: 1\n", map[string]string{keys: signers(eve), ".github/witnesses": "log x\n"})
	branch("main", "witnesses: {file: .github/witnesses, required: 1}\n"+protects, map[string]string{".github/witnesses": names, keys: signers(log)})
	h.clone()
	h.env["COUNTERSIGN_SIGN_KEY"] = log.pem
	h.propose(greetFix)
	signed := "allowed-signers=" + keys
	run("keys and a witness", 0, "signed: all of them, by allowed signers\nwitnessed as github.com/acme/site: 3 commits, all there are\n", signed)
	run("the witness alone", 0, "witnessed as github.com/acme/site: 3 commits, all there are\n")
	witnessed := h.s.Ref(site, checkpoints)
	h.s.Git(site, "update-ref", "-d", checkpoints)
	run("no checkpoint", console.ExitFailed, "does not verify")
	h.s.Git(site, "update-ref", checkpoints, witnessed)
	run("a file that is not there", console.ExitIO, "there is no file .github/none beside the Policy", "allowed-signers=.github/none")
	run("a path that leads out", console.ExitIO, "allowed-signers", "allowed-signers=../"+keys)
	for what, c := range map[string]struct {
		rules, keys string
		want        int
		says        string
	}{
		"too few witnesses":   {"witnesses: {file: .github/witnesses, required: 2}\n", "", console.ExitRefused, "witness"},
		"no file of them":     {"witnesses: {file: .github/none, required: 1}\n", "", console.ExitIO, ".github/none"},
		"a Policy's mistake":  {"witnesses: {file: .github/witnesses, requires: 1}\n", "", console.ExitRefused, "requires"},
		"none required":       {"witnesses: {file: .github/witnesses}\n", "", 0, "requires no witness"},
		"keys of another":     {protects, signers(eve), console.ExitFailed, "does not verify"},
		"no keys":             {protects, "# none\n", console.ExitFailed, "does not verify"},
		"what is no key":      {protects, "x\n", console.ExitRefused, keys},
		"keys, not protected": {"version: 1\n", signers(log), console.ExitRefused, "says whom the audit believes"},
		"keys":                {protects, signers(log), 0, "Something accounts for each commit"},
	} {
		files := map[string]string{".github/witnesses": names}
		var inputs []string
		if c.keys != "" {
			files[keys], inputs = c.keys, []string{signed}
		}
		branch("main", c.rules, files)
		run(what, c.want, c.says, inputs...)
	}
}
