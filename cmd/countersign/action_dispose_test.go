package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// A disposer is a repository whose watch keeps an issue, with one commit of eve's that nothing accounts for and one of bob's.
type disposer struct {
	*hub
	issue       int
	eves, bobs  string // commits
	transaction string // that ada approved
}

func newDisposer(t *testing.T) *disposer {
	h := &disposer{hub: openHub(t, false)}
	h.policy("exceptions: {review: 5d}\n")
	tx, fingerprint := h.propose(greetFix)
	h.says("ada", "/approve "+fingerprint)
	h.settle(0, "--no-gate")
	h.transaction = tx
	h.eves, h.bobs = h.pushes("eve", "main", "eve.txt", "x"), h.pushes("bob", "main", "bob.txt", "x")
	h.clone()
	h.event("push", nil)
	h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, "contents:read", "issues:write")
	_, _, printed := h.step("watch")
	all := h.s.Issues(site)
	if len(all) != 1 || !strings.Contains(all[0].Body, "/dispose COMMIT accepted") || !strings.Contains(all[0].Body, h.eves) {
		t.Fatalf("%+v\n%s", all, printed)
	}
	h.issue = all[0].Number
	return h
}

// comments has somebody comment, and the job run for that; then happens before the job reads it. It returns what was answered, "" for
// nothing, what was printed, and whether something was recorded.
func (h *disposer) comments(n githubtest.NewComment, then func(id int64)) (answer, printed string, recorded bool) {
	h.Helper()
	n.Repository = site
	if n.Number == 0 {
		n.Number = h.issue
	}
	id := h.s.Comment(n).ID
	before := h.s.Ref(site, "refs/agent/ledger")
	said := len(h.s.Issues(site)[0].Comments)
	h.on(githubtest.Event{Name: "issue_comment", Action: "created", ID: id})
	if then != nil {
		then(id)
		said = len(h.s.Issues(site)[0].Comments)
	}
	h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, "contents:write", "issues:write")
	code, _, printed := h.action("dispose")
	if code != 0 {
		h.Errorf("exit code %d\n%s", code, printed)
	}
	if all := h.s.Issues(site)[0].Comments; len(all) > said {
		answer = all[said]
	}
	return answer, printed, h.s.Ref(site, "refs/agent/ledger") != before
}

// TestActionDispose: a comment on the watch's issue is recorded, once, with what the forge told of it, and counts; a second reading of it
// records nothing. The record verifies.
func TestActionDispose(t *testing.T) {
	t.Parallel()
	h := newDisposer(t)
	n := githubtest.NewComment{By: "ada", Body: "/dispose " + h.eves + " accepted\r\nshe asked me,\r\nand it is right"}
	answer, printed, recorded := h.comments(n, nil)
	if !recorded || !strings.HasPrefix(answer, "Recorded in `tx_") || !strings.Contains(answer, h.eves) {
		t.Fatalf("%q\n%s", answer, printed)
	}
	before := h.s.Ref(site, "refs/agent/ledger")
	if code, _, again := h.action("dispose"); code != 0 || !strings.Contains(again, "recorded already") || h.s.Ref(site, "refs/agent/ledger") != before {
		t.Errorf("exit code %d\n%s", code, again)
	}
	h.env["INPUT_TOKEN"] = h.token
	h.audits()
	year := time.Now().UTC().Format("2006-01-02")
	_, out, _ := h.run("evidence", "--from", "2020-01-01", "--to", year, "--branch", "main", "--json")
	if !strings.Contains(out, `"reason":"she asked me, and it is right"`) || !strings.Contains(out, `"counted":true`) || strings.Contains(out, `"counted":false`) {
		t.Errorf("%s", out)
	}
	for about, refusal := range map[string]string{
		h.bobs: "", h.eves[:12]: "its first line is not exactly", h.transaction: "its author approved it",
	} {
		answer, printed, recorded := h.comments(githubtest.NewComment{By: "ada", Body: "/dispose " + about + " fixed\nby the next commit"}, nil)
		if recorded != (refusal == "") || !strings.Contains(answer, refusal) {
			t.Errorf("%s: %q\n%s", about, answer, printed)
		}
	}
}

// TestT10DisposeForged: what is no comment of a person who may decide, as it was posted, on the watch's issue, exactly a command with a
// reason about what is there and is not theirs, is not recorded. Only who may decide is answered, without what they wrote.
func TestT10DisposeForged(t *testing.T) {
	long(t)
	t.Parallel()
	h := newDisposer(t)
	h.s.Bot("helper[bot]")
	h.person("helper-person", "none")
	mark := h.s.Issues(site)[0].Body
	eves, none := h.s.OpenIssue(site, "eve", "commits of main", mark), h.s.OpenIssue(site, "github-actions[bot]", "a digest", "waits")
	good, pushed := "/dispose "+h.eves+" accepted\nit is right", h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "eve", Message: "x\n\nCo-authored-by: x <nobody@example.org>", Files: map[string]string{"z": "z"}})
	edit := func(by, body string) func(int64) { return func(id int64) { h.s.Edit(id, by, body) } }
	for name, c := range map[string]struct {
		by, body string
		number   int
		app      string
		email    bool
		then     func(int64)
		answer   string // "" is nobody
		printed  string
	}{
		"a reader":             {by: "eve", body: good, printed: "its author has read permission, write needed"},
		"a stranger":           {by: "helper-person", body: good, printed: "its author has read permission, write needed"},
		"a bot":                {by: "helper[bot]", body: good, printed: "its author has no permission"},
		"through an app":       {by: "ada", body: good, app: "helper[bot]", answer: "posted through the app helper"},
		"by e-mail":            {by: "ada", body: good, email: true, answer: "sent by e-mail"},
		"edited by somebody":   {by: "ada", body: "a word", then: edit("bob", good), answer: "edited after posting"},
		"edited by its author": {by: "ada", body: good + "!", then: edit("ada", good), answer: "edited after posting"},
		"hidden":               {by: "ada", body: good, then: func(id int64) { h.s.Hide(id, true) }, answer: "is hidden"},
		"gone":                 {by: "ada", body: good, then: func(id int64) { h.s.Delete(id) }, printed: "it is gone"},
		"an issue of eve's":    {by: "ada", body: good, number: eves, printed: "no new comment on the issue"},
		"another of ours":      {by: "ada", body: good, number: none, printed: "no new comment on the issue"},
		"on a pull request":    {by: "ada", body: good, number: h.pr, printed: "no new comment on the issue"},
		"closed":               {by: "ada", body: good, then: func(int64) { h.s.EditIssue(site, h.issue, mark, false) }, printed: "no new comment on the issue"},
		"another mark":         {by: "ada", body: good, then: func(int64) { h.s.EditIssue(site, h.issue, "x"+mark, true) }, printed: "no new comment on the issue"},
		"two commands":         {by: "ada", body: good + "\n \t/dispose " + h.bobs + " accepted", answer: "a comment has one command"},
		"an approval below":    {by: "ada", body: good + "\n/approve", answer: "a comment has one command"},
		"a part of an id":      {by: "ada", body: strings.Replace(good, h.eves, h.eves[:39], 1), answer: "its first line is not exactly"},
		"upper case":           {by: "ada", body: strings.Replace(good, h.eves, strings.ToUpper(h.eves), 1), answer: "its first line is not exactly"},
		"two spaces":           {by: "ada", body: strings.Replace(good, " acc", "  acc", 1), answer: "its first line is not exactly"},
		"more on its line":     {by: "ada", body: strings.Replace(good, "accepted", "accepted <img src=x> @eve", 1), answer: "its first line is not exactly"},
		"another outcome":      {by: "ada", body: strings.Replace(good, "accepted", "ignored", 1), answer: "its first line is not exactly"},
		"a commit of nobody":   {by: "ada", body: strings.Replace(good, h.eves, strings.Repeat("a", 40), 1), answer: "the repository has no such commit"},
		"an unknown change":    {by: "ada", body: strings.Replace(good, h.eves, "tx_01KE5Q86Z943M4K0W7WAJYDRW9", 1), answer: "the ledger has no such transaction"},
		"no reason":            {by: "ada", body: "/dispose " + h.eves + " accepted\n \n", answer: "it gives no reason"},
		"a secret":             {by: "ada", body: good + " as ghp_" + "Zx81mQp0LkTy47VbNc63RdWs29HgJf5aEuOi", answer: "looks like a secret"},
		"one's own commit":     {by: "bob", body: strings.Replace(good, h.eves, h.bobs, 1), answer: "its author wrote or committed that"},
		"who wrote it?":        {by: "ada", body: strings.Replace(good, h.eves, pushed, 1), answer: "somebody of no account wrote"},
		"one's own approval":   {by: "ada", body: strings.Replace(good, h.eves, h.transaction, 1), answer: "its author approved it"},
	} {
		answer, printed, recorded := h.comments(githubtest.NewComment{By: c.by, Body: c.body, Number: c.number, App: c.app, Email: c.email}, c.then)
		if recorded || (answer == "") != (c.answer == "") || !strings.Contains(answer, c.answer) || !strings.Contains(printed, c.printed) {
			t.Errorf("%s: recorded %v, %q\n%s", name, recorded, answer, printed)
		}
		if strings.Contains(answer, "<img") || strings.Contains(answer, "@eve") || strings.Contains(answer+printed, "Zx81mQ") {
			t.Errorf("%s: what was written is in %q\n%s", name, answer, printed)
		}
		h.s.EditIssue(site, h.issue, mark, true)
	}
	for name, do := range map[string]func(){
		"another event":    func() { h.event("push", nil) },
		"a pull request's": func() { h.event("pull_request", nil) },
		"without a comment": func() {
			h.event("issue_comment", map[string]any{"action": "created", "issue": map[string]any{"number": h.issue}})
		},
	} {
		before := h.s.Ref(site, "refs/agent/ledger")
		do()
		if _, _, printed := h.action("dispose"); h.s.Ref(site, "refs/agent/ledger") != before {
			t.Errorf("%s: it was recorded\n%s", name, printed)
		}
	}
	h.policyOn("ada", "main", "version: 1\nbots: [bob]\n")
	if answer, printed, recorded := h.comments(githubtest.NewComment{By: "bob", Body: good}, nil); recorded || answer != "" || !strings.Contains(printed, "lists its author under bots") {
		t.Errorf("of an account that is listed as a bot: %q\n%s", answer, printed)
	}
	h.policyOn("ada", "main", "version: 1\napprovals: {signed: require, keys: .github/countersign.yml}\n")
	if answer, printed, recorded := h.comments(githubtest.NewComment{By: "ada", Body: good}, nil); recorded || !strings.Contains(answer, "asks for signatures") {
		t.Errorf("where the Policy asks for signatures: %q\n%s", answer, printed)
	}
	h.env["INPUT_TOKEN"] = h.token
	h.policyOn("ada", "main", "version: 1\n")
	h.s.Fail(githubtest.Fault{Path: fmt.Sprintf("/api/v3/repos/%s/issues/%d/comments", site, h.issue), Status: 500, Times: 100})
	h.on(githubtest.Event{Name: "issue_comment", Action: "created", ID: h.s.Comment(githubtest.NewComment{Repository: site, Number: h.issue, By: "ada", Body: good}).ID})
	if code, _, printed := h.action("dispose"); code == 0 {
		t.Errorf("a forge that fails: exit code 0\n%s", printed)
	}
}

// T67 The daily job records what protects the branch where it has changed, and begins no ledger.
func TestT67SettingsDaily(t *testing.T) {
	t.Parallel()
	h := openHub(t, false)
	h.event("schedule", nil)
	h.env["INPUT_TOKEN"] = h.s.ActionsToken(site, "contents:write")
	settings := func(want string, moves bool) {
		t.Helper()
		h.clone()
		before := h.s.Ref(site, "refs/agent/ledger")
		code, _, printed := h.step("settings")
		if code != 0 || !strings.Contains(printed, want) || moves != (h.s.Ref(site, "refs/agent/ledger") != before) {
			t.Errorf("exit code %d, ledger %q, want %q\n%s", code, before, want, printed)
		}
	}
	settings("", false)
	h.propose(greetFix)
	settings("what protects main: 0 rules: recorded in ", true)
	settings("", false)
	h.s.AddRuleset(site, githubtest.Ruleset{Target: "branch", Branches: []string{"main"}, Rules: []map[string]any{{"type": "deletion"}}})
	settings("what protects main: 1 rule: recorded in ", true)
	h.clone()
	h.run("sync")
	h.does("audit")
}
