package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// explains audits one commit.
func (a *attack) explains(commit string, want int) string {
	a.Helper()
	a.git(a.dir, "fetch", "-q", "origin")
	a.does("sync")
	code, stdout, stderr := a.run("audit", "--commit", commit)
	if code != want {
		a.Errorf("audit --commit: exit code %d, want %d: %s%s", code, want, stdout, stderr)
	}
	return stdout
}

// T06: what was merged is the approved change on whatever main had by then, as one commit or
// several: also where other lines of a file have changed, and in a clone without old files.
func TestT06MergedOnMain(t *testing.T) {
	long(t)
	for _, how := range []string{"merge", "squash", "rebase"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			a := newGuard(t, "")
			greeting := []string{"one", "hello", "three"}
			for i, moves := range []string{"", "other.txt", "greet.txt", "greet.txt"} {
				if i > 0 { // the next one
					a.pr = a.opens(fmt.Sprint("topic", i))
				}
				branch := a.s.Pull(site, a.pr).Branch
				greeting[0] = fmt.Sprint("first ", i)
				if i == 3 { // of one commit
					a.s.Git(site, "update-ref", "refs/heads/"+branch, "main")
				}
				a.pushes("bob", branch, "greet.txt", strings.Join(greeting, "\n")+"\n") // a second commit
				a.happens(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: a.pr})
				a.guards(asks)
				a.reviews("ada", "APPROVED", "")
				a.guards(passes)
				switch main := a.s.File(site, "main", "greet.txt"); moves {
				case "other.txt":
					a.pushes("ada", "main", moves, "meanwhile\n")
				case "greet.txt":
					last := fmt.Sprint("last ", i)
					a.pushes("ada", "main", moves, strings.Replace(main, greeting[2], last, 1))
					greeting[2] = last
				}
				commit := a.s.Merge(site, a.pr, "bob", how)
				a.s.Role(site, "ada", "read") // who may not approve any more has approved
				a.dir = a.TempDir() + "/partial"
				a.git("", "clone", "-q", "--filter=blob:none", a.s.URL+"/"+site+".git", a.dir)
				a.settle(0)
				a.s.Role(site, "ada", "write")
				if got := a.status(a.tx); got != "completed" || a.s.File(site, "main", "greet.txt") != strings.Join(greeting, "\n")+"\n" {
					t.Errorf("main moved in %q: %s is %s:\n%s", moves, a.tx, got, a.comment())
				}
				if !strings.Contains(a.s.Git(site, "log", "-1", "-p", "--format=", "refs/agent/ledger"), `"merge_commit":"`+commit+`"`) {
					t.Errorf("main moved in %q: the ledger does not say that it was merged as %s", moves, commit)
				}
				a.clone()
				a.explains(commit, 0)
				if code, out, stderr := a.run("audit", "--branch", "origin/main"); (code == 0) != (i == 0) || strings.Count(out, "  unexplained ") != i {
					t.Errorf("main moved in %q: of the branch, more or less is unexplained than %d pushes: %s%s", moves, i, out, stderr)
				}
			}
			a.audits()
		})
	}
}

// opens opens a pull request of bob's with one commit on main.
func (h *hub) opens(branch string) int {
	h.Helper()
	h.s.Git(site, "branch", branch, "main")
	h.pushes("bob", branch, branch+".txt", "x\n")
	return h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: branch}).Number
}

func TestT06MergedWithoutApproval(t *testing.T) {
	t.Parallel()
	a := newGuard(t, "")
	commit := a.s.Merge(site, a.pr, "bob", "squash")
	a.reviews("ada", "COMMENTED", "oh")
	a.settle(0)
	if got := a.status(a.tx); got != "interrupted" || !strings.Contains(a.comment(), "without every approval") {
		t.Errorf("%s is %s:\n%s", a.tx, got, a.comment())
	}
	a.explains(commit, console.ExitFailed)
	for _, c := range a.s.CheckRuns(site, "") {
		if c.Conclusion == "success" {
			t.Errorf("%s passes", c.Name)
		}
	}
}

// T56: an approval after the merge accounts for the commit, and is told to be late, also where the
// next settle comes after both.
func TestT56MergedAndApprovedLater(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "")
	commit := a.s.Merge(site, a.pr, "bob", "squash")
	a.reviews("ada", "APPROVED", "")
	a.settle(0)
	a.clone()
	a.explains(commit, 0)
	for _, command := range [][]string{{"audit", "--commit", commit}, {"audit", "--branch", "origin/main"}, {"evidence", "--from", "2020-01-01", "--to", "2099-12-31", "--branch", "origin/main"}} {
		_, out, stderr := a.run(append(command, "--json")...)
		if !strings.Contains(out, "was approved at ") || !strings.Contains(out, ", and merged at ") || (command[0] == "evidence") != strings.Contains(out, `{"code":"approved_late"`) {
			t.Errorf("%v: %s%s", command, out, stderr)
		}
	}
}

// What is in a diff that cannot be approved byte by byte fails the check, which
// says why.
func TestT33UnfitDiff(t *testing.T) {
	for name, change := range map[string]struct {
		entry string // mode, object, path of git update-index
		why   string
	}{
		"symbolic link": {"120000,%s,link", "symbolic link"},
		"submodule":     {"160000,0123456789012345678901234567890123456789,sub", "submodule"},
		"path":          {"100644,%s,git~1", "reads as .git"},
	} {
		if name != "symbolic link" && !everything() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newGuard(t, "")
			a.reviews("ada", "APPROVED", "")
			a.guards(passes)
			a.commits(change.entry)
			a.reviews("ada", "APPROVED", "")
			a.guards(broken)
			summary := a.check("countersign", a.s.Pull(site, a.pr).Head).Summary
			if !strings.Contains(summary, change.why) || !strings.Contains(a.comment(), change.why) {
				t.Errorf("nothing says why:\n%s\n%s", summary, a.comment())
			}
		})
	}
}

func TestT42TooMuch(t *testing.T) {
	t.Parallel()
	a := newGuard(t, "limits: {files: 2}\n")
	a.s.Push(githubtest.NewCommit{Repository: site, Branch: "topic", By: "bob", Files: map[string]string{"1": "1\n", "2": "2\n"}})
	a.reviews("ada", "APPROVED", "")
	a.guards(broken)
	if !strings.Contains(a.comment(), "3 files") || !strings.Contains(a.check("countersign", a.s.Pull(site, a.pr).Head).Summary, "3 files") {
		t.Errorf("nothing says why:\n%s", a.comment())
	}
}

// T42: a proposer who has as many changes open as the Policy allows is told so on the pull request, and nobody is asked, until one has
// ended. A push to the same pull request takes the place of what was there.
func TestT42TooManyOpen(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "limits: {open: 1}\n")
	a.pushes("bob", "topic", "more.txt", "more\n")
	a.guards(asks)
	first := a.pr
	a.pr = a.opens("second")
	a.happens(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: a.pr})
	a.guards(broken)
	for _, text := range []string{a.comment(), a.check("countersign", a.s.Pull(site, a.pr).Head).Summary} {
		if !strings.Contains(text, "bob has 1 change open, and limits.open of the Policy is 1") || !strings.Contains(text, strings.TrimPrefix(a.tx, "tx_")) {
			t.Errorf("nothing says why:\n%s", text)
		}
	}
	second := a.pr
	a.pr = first
	a.reviews("ada", "APPROVED", "")
	a.guards(passes)
	a.s.Merge(site, first, "bob", "squash")
	a.clone()
	a.run("settle", "--json", "--pr", fmt.Sprint(first))
	a.pr = second
	a.happens(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: a.pr})
	a.guards(asks)
}

// The same of what a workflow hands over: what takes the place of an earlier proposal is none more, and anything else is refused.
func TestT42TooManyProposed(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "limits: {open: 1}\n")
	a.waits()
	a.proposes("hello, moon")
	a.waits()
	code, _, stderr := a.run("settle", "--json", "--no-gate", "--pr", fmt.Sprint(a.pr), "--bundle", a.bundle(addition("more.txt", "more\n")))
	if code != console.ExitRefused || !strings.Contains(stderr, "has 1 change open") || !strings.Contains(a.comment(), "limits.open of the Policy is 1") {
		t.Errorf("exit code %d: %s\n%s", code, stderr, a.comment())
	}
}

// commits adds an entry to the tree of the pull request's branch, as no pushing
// client of GitHub's would.
func (a *attack) commits(entry string) {
	a.Helper()
	dir := a.TempDir()
	a.git("", "clone", "-q", "-b", "topic", a.s.URL+"/"+site+".git", dir+"/hostile")
	dir += "/hostile"
	blob := a.git(dir, "rev-parse", "HEAD:greet.txt")
	if strings.Contains(entry, "%s") {
		entry = fmt.Sprintf(entry, blob)
	}
	a.git(dir, "-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "update-index", "--add", "--cacheinfo", entry)
	a.git(dir, "-c", "user.name=bob", "-c", "user.email=bob@example.org", "commit", "-q", "-m", "hostile")
	a.git(dir, "-c", "http.extraHeader=Authorization: Bearer "+a.token, "push", "-q", "origin", "HEAD:refs/heads/topic")
}

func TestT46SecretInTheDiff(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "")
	const secret = "ghp_" + "Zx81mQp0LkTy47VbNc63RdWs29HgJf5aEuOi"
	a.pushes("bob", "topic", "config.env", "TOKEN="+secret+"\n")
	a.guards(asks)
	a.reviews("ada", "APPROVED", "")
	a.guards(asks)
	a.says("bob", "/approve secret:"+a.fingerprint)
	a.guards(asks, "its author is the proposer, who cannot excuse a secret")
	for _, text := range a.written() {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is told:\n%s", text)
		}
	}
	a.says("ada", "/approve secret:"+a.fingerprint)
	a.guards(passes)
	for _, text := range a.written() {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is told:\n%s", text)
		}
	}
	a.audits()
}

// written is all that was posted, and the ledger.
func (a *attack) written() []string {
	var out []string
	for _, c := range append(a.s.Comments(site, a.pr), a.s.ReviewComments(site, a.pr)...) {
		if c.Author == "github-actions[bot]" {
			out = append(out, c.Body)
		}
	}
	for _, c := range a.s.CheckRuns(site, "") {
		out = append(out, fmt.Sprintf("%+v", c))
	}
	return append(out, a.s.Git(site, "log", "-p", "--format=%B", "refs/agent/ledger"))
}

// The Policy that a pull request brings does not hold for it, and to change it
// takes more than to change anything else.
func TestT20PolicyOfThePullRequest(t *testing.T) {
	long(t)
	t.Parallel()
	a := newGuard(t, "approvals: {required: 2}\n")
	a.pushes("bob", "topic", ".github/countersign.yml", "version: 1\napprovals: {allow_author: true, permission: read}\n")
	a.git(a.dir, "fetch", "-q", "origin", "topic")
	a.git(a.dir, "checkout", "-q", "FETCH_HEAD")
	a.says("bob", "/approve "+a.fingerprint)
	a.guards(asks)
	a.says("bob", "/approve "+a.fingerprint)
	a.says("eve", "/approve "+a.fingerprint)
	a.says("ada", "/approve "+a.fingerprint)
	out := a.guards(asks, "its author is the proposer", "has read permission")
	if reason := out.Transactions[len(out.Transactions)-1].Verdict; reason.State != "pending" {
		t.Errorf("%+v", reason)
	}
	a.person("dan", "write")
	a.says("dan", "/approve "+a.fingerprint)
	a.guards(asks)
	a.says("dan", "/approve protected:"+a.fingerprint)
	a.guards(passes)
}
