package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// ledgers is the private repository that keeps the ledgers of others in these tests.
const ledgers = "acme/ledgers"

// newElsewhere is newHub where the Policy of the default branch names another repository for the
// ledger, and the job has a token for that one. eve/ledgers is a repository of eve's, to which that token may write as well.
func newElsewhere(t *testing.T) *hub {
	h := newHub(t)
	for _, name := range []string{ledgers, "eve/ledgers"} {
		h.s.Repository(githubtest.NewRepository{Name: name, Private: true, Files: map[string]string{"README.md": "# Ledgers\n"}})
	}
	h.policyOn("ada", "main", "version: 1\nledger: {repository: "+ledgers+"}\n")
	h.clone()
	return h
}

// policyOn pushes a Policy to a branch.
func (h *hub) policyOn(by, branch, text string) {
	h.s.Push(githubtest.NewCommit{Repository: site, Branch: branch, By: by, Files: map[string]string{policy.Path: text}})
}

// ledgerToken gives the job a token for that repository.
func (h *hub) ledgerToken(permission string, repositories ...string) string {
	token := h.s.AppToken(githubtest.AppToken{Bot: "github-actions[bot]", Repositories: repositories, Permissions: map[string]string{"contents": permission}})
	h.env[console.LedgerTokenName] = token
	return token
}

// refs are all refs of a repository on the server below refs/agent, and what they are at.
func (h *hub) refs(repository string) string {
	return h.s.Git(repository, "for-each-ref", "--format=%(refname) %(objectname)", "refs/agent", "refs/heads/countersign-ledger*")
}

// noLedger fails the test if a repository has a ledger, whatever its name.
func (h *hub) noLedger(repositories ...string) {
	h.Helper()
	for _, name := range repositories {
		if refs := h.refs(name); refs != "" {
			h.Errorf("%s has %s", name, refs)
		}
	}
}

// TestLedgerElsewhere: the ledger of a public repository is kept in a private one, on a ref
// with the number of the repository, and nothing of it is in the repository itself.
func TestLedgerElsewhere(t *testing.T) {
	t.Parallel()
	h := newElsewhere(t)
	token := h.ledgerToken("write", ledgers)
	tx, fingerprint := h.propose(greetFix)
	h.says("ada", "/approve "+fingerprint)
	h.clone()
	h.env[console.LedgerTokenName] = token
	if done := h.settle(0, "--no-gate"); done.Transactions[0].ID != tx || done.Transactions[0].Status != "completed" {
		t.Errorf("%+v", done)
	}
	tip := h.s.Ref(ledgers, fmt.Sprintf("refs/agent/ledger-%d", h.id))
	if refs := h.refs(ledgers); tip == "" || strings.Contains(refs, "\n") {
		t.Errorf("%s has %s", ledgers, refs)
	}
	h.noLedger(site, "eve/ledgers")
	for _, c := range h.s.Comments(site, h.pr)[:1] { // the program's
		if !strings.Contains(c.Body, "/"+ledgers+"/tree/"+tip+"/transactions/") || strings.Contains(c.Body, "/"+site+"/tree/") ||
			strings.Contains(c.Body, "/"+site+"/commit/"+tip) || strings.Contains(c.Body, "git fetch origin") {
			t.Errorf("the comment leads elsewhere:\n%s", c.Body)
		}
	}
	h.audits()
	code, stdout, stderr := h.run("show", "--json", "--no-push", tx) // asks nobody
	if code != 0 || !strings.Contains(stdout, "/"+ledgers+"/tree/"+tip+"/transactions/") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}

	page := filepath.Join(t.TempDir(), "page.html")
	h.does("report", "--html", "--out", page, tx)
	h.fetchesElsewhere(page)
	dir := filepath.Join(t.TempDir(), "site")
	h.does("site", "--out", dir)
	h.fetchesElsewhere(filepath.Join(dir, "tx", tx+".html"))

	// A fork has another number, and so another ledger there, whatever its name is later.
	fork := h.s.Fork(site, "bob/site")
	h.s.Role("bob/site", "ada", "admin")
	h.git(h.dir, "remote", "add", "fork", h.s.URL+"/bob/site.git")
	h.env = map[string]string{"HOME": h.env["HOME"], "GITHUB_API_URL": h.s.API(), "GIT_CONFIG_NOSYSTEM": "1", "COUNTERSIGN_TOKEN": h.s.Token("ada"), "USER": "ada"}
	h.policyOn("ada", "main", "version: 1\nledger: {repository: "+ledgers+"}\n")
	h.s.Role(ledgers, "ada", "write")
	code, stdout, stderr = h.run("review", "--push", "--remote", "fork", "--patch", h.write("more.patch", addition("more.txt", "more\n")))
	if code != 0 || h.s.Ref(ledgers, fmt.Sprintf("refs/agent/ledger-%d", fork)) == "" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if refs := h.refs(ledgers); strings.Count(refs, "refs/") != 2 || h.s.Ref(ledgers, fmt.Sprintf("refs/agent/ledger-%d", h.id)) != tip {
		t.Errorf("the fork's, %d: %s", fork, refs)
	}
	h.noLedger(site, "bob/site")
}

// fetchesElsewhere fails the test unless a page brings the ledger with the command that knows where it is.
func (h *hub) fetchesElsewhere(page string) {
	h.Helper()
	if raw, err := os.ReadFile(page); err != nil || !strings.Contains(string(raw), "countersign sync\n") || strings.Contains(string(raw), "git fetch") {
		h.Errorf("the page says where the ledger is not: %v", err)
	}
}

// stages are command lines that share the ledger.
func (h *hub) stages() [][]string {
	fix := h.write("stage.patch", addition("stage.txt", "stage\n"))
	bundle := h.write("stage.json", bundleOf(greetFix, ""))
	return [][]string{
		{"review", "--push", "--patch", fix}, {"review", "--push", "--pr", fmt.Sprint(h.pr), "--patch", fix}, {"run", "--push", "--patch", fix},
		{"gate", "--push"}, {"approve", "--push"}, {"deny", "--push", "--reason", "no"}, {"apply", "--push"}, {"validate", "--push"}, {"run", "--push", "--all"},
		{"sync"}, {"list", "--push"}, {"show", "--push"}, {"log", "--push"}, {"ledger", "tip", "--push"}, {"list", "--matrix"},
		{"settle", "--pr", fmt.Sprint(h.pr)}, {"settle", "--pr", fmt.Sprint(h.pr), "--bundle", bundle}, {"settle", "--all"}, {"close", "--push", "--reason", "no"},
	}
}

// closed runs every stage and the site of the Action, and fails the test unless each ends with an error that says
// so, and nothing has changed anywhere.
func (h *hub) closed(what, says string) {
	h.Helper()
	h.git(h.dir, "config", "user.email", "ada@example.org")
	before := []string{h.refs(site), h.refs(ledgers), h.refs("eve/ledgers"), h.git(h.dir, "for-each-ref", "refs/agent")}
	for _, args := range h.stages() {
		code, stdout, stderr := h.run(args...)
		if code == 0 || code == console.ExitPending || code == console.ExitDenied || !strings.Contains(stderr, says) || strings.Contains(stdout+stderr, h.env[console.LedgerTokenName]+"x") {
			h.Errorf("%s: %q: %d %s%s", what, args, code, stdout, stderr)
		}
	}
	h.env["INPUT_STAGE"], h.env["INPUT_OUT"], h.env["GITHUB_OUTPUT"] = "site", filepath.Join(h.TempDir(), "site"), h.write("output", "")
	if code, stdout, stderr := h.run("action"); code == 0 || !strings.Contains(stderr, says) {
		h.Errorf("%s: site: %d %s%s", what, code, stdout, stderr)
	}
	delete(h.env, "INPUT_STAGE")
	if after := []string{h.refs(site), h.refs(ledgers), h.refs("eve/ledgers"), h.git(h.dir, "for-each-ref", "refs/agent")}; !slices.Equal(before, after) {
		h.Errorf("%s: %q has become %q", what, before, after)
	}
}

// TestT86LedgerElsewhereFailsClosed: where the repository of the ledger, or what says which it is, cannot be read in
// full, nothing is read or written anywhere, and never in the repository itself. COUNTERSIGN_LONG is for each way,
// and not one.
func TestT86LedgerElsewhereFailsClosed(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		what, says string
		do         func(h *hub)
	}{
		{"the job of a fork's pull request", ledgers, func(h *hub) { delete(h.env, console.LedgerTokenName) }},
		{"a token for another repository", ledgers, func(h *hub) { h.ledgerToken("write", "eve/ledgers") }},
		{"a token that is none", ledgers, func(h *hub) { h.s.Revoke(h.env[console.LedgerTokenName]) }},
		{"a token without rights", ledgers, func(h *hub) { h.ledgerToken("none", ledgers) }},
		{"no such repository", ledgers, func(h *hub) { h.s.Fail(githubtest.Fault{Path: "/" + ledgers, Status: 404, Times: -1}) }},
		{"it answers 403", ledgers, func(h *hub) { h.s.Fail(githubtest.Fault{Path: "/" + ledgers, Status: 403, Times: -1}) }},
		{"it answers 500", ledgers, func(h *hub) { h.s.Fail(githubtest.Fault{Path: "/" + ledgers, Status: 500, Times: -1}) }},
		{"it answers with a page", ledgers, func(h *hub) {
			h.s.Fail(githubtest.Fault{Path: "/" + ledgers, Kind: githubtest.Body, Text: "<html>", Times: -1})
		}},
		{"it was renamed", "elsewhere now", func(h *hub) { h.s.Fail(githubtest.Fault{Path: "/" + ledgers, Status: 301, Times: -1}) }},
		{"the event is of another repository", "the repository that was told of", func(h *hub) {
			h.event("workflow_dispatch", map[string]any{"repository": map[string]any{"id": 7, "full_name": "acme/other", "default_branch": "main"}})
		}},
		{"the event has no name", "the repository that was told of", func(h *hub) {
			h.event("workflow_dispatch", map[string]any{"repository": map[string]any{"id": h.id, "default_branch": "main"}})
		}},
		{"the event has a number that is none", "no number", func(h *hub) {
			h.event("workflow_dispatch", map[string]any{"repository": map[string]any{"id": -h.id, "full_name": site, "default_branch": "main"}})
		}},
		{"nobody tells the number", "number", func(h *hub) {
			h.event("schedule", map[string]any{"repository": map[string]any{"id": 0, "full_name": site, "default_branch": "main"}})
			h.s.Fail(githubtest.Fault{Path: "/api/v3/repos/" + site, Kind: githubtest.Body, Text: `{"full_name":"` + site + `","default_branch":"main"}`, Times: -1})
		}},
		{"only the clone's configuration tells the number", "number", func(h *hub) {
			h.event("schedule", map[string]any{"repository": map[string]any{"id": 0, "full_name": site, "default_branch": "main"}})
			h.git(h.dir, "config", "remote.origin.repositoryId", fmt.Sprint(h.id))
			delete(h.env, "INPUT_TOKEN")
		}},
		{"the number is told of another name", "the repository that was told of", func(h *hub) {
			h.event("schedule", map[string]any{"repository": map[string]any{"id": 0, "full_name": site, "default_branch": "main"}})
			h.s.Fail(githubtest.Fault{Path: "/api/v3/repos/" + site, Kind: githubtest.Body, Text: `{"id":9,"full_name":"acme/other","default_branch":"main"}`, Times: -1})
		}},
		{"the Policy is wrong", policy.Path, func(h *hub) { h.policyOn("ada", "main", "version: 1\nledger: {repositry: "+ledgers+"}\n") }},
		{"the Policy names no repository", policy.Path, func(h *hub) { h.policyOn("ada", "main", "version: 1\nledger: {repository: ../ledgers}\n") }},
		{"the Policy names the repository itself", "itself", func(h *hub) { h.policyOn("ada", "main", "version: 1\nledger: {repository: Acme/Site}\n") }},
		{"HEAD names no branch", "HEAD", func(h *hub) { h.s.Git(site, "symbolic-ref", "HEAD", "refs/heads/gone") }},
		{"the repository cannot be read", site, func(h *hub) { h.s.Fail(githubtest.Fault{Path: "/" + site, Status: 500, Times: -1}) }},
	} {
		if i > 0 && !everything() {
			continue
		}
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			h := newElsewhere(t)
			h.ledgerToken("write", ledgers)
			h.propose(addition("first.txt", "first\n"))
			had := h.env[console.LedgerTokenName]
			remote := func(repository, token string) string {
				return strings.Replace(h.s.URL, "://", "://x:"+token+"@", 1) + "/" + repository + ".git"
			}
			h.git(h.dir, "fetch", "-q", remote(ledgers, had), "refs/agent/*:refs/planted/*") // for nobody to take in its place
			h.git(h.dir, "push", "-q", remote(site, h.token), fmt.Sprintf("refs/planted/ledger-%d:refs/agent/ledger", h.id))
			h.clone()
			h.env[console.LedgerTokenName] = had
			c.do(h)
			h.closed(c.what, c.says)
		})
	}
}

// TestT86LedgerElsewhereOfHEAD: the Policy that is checked out says nothing about where the ledger is, in a workflow and on a
// person's machine: neither one that names a repository of eve's, nor one that names none.
func TestT86LedgerElsewhereOfHEAD(t *testing.T) {
	long(t)
	t.Parallel()
	for _, hostile := range []string{"version: 1\nledger: {repository: eve/ledgers}\n", "version: 1\n"} {
		for _, workflow := range []bool{true, false} {
			h := newElsewhere(t)
			h.policyOn("bob", "topic", hostile)
			h.clone()
			h.ledgerToken("write", ledgers, "eve/ledgers", site)
			if !workflow {
				h.env = map[string]string{"HOME": h.env["HOME"], "GITHUB_API_URL": h.s.API(), "GIT_CONFIG_NOSYSTEM": "1", "COUNTERSIGN_TOKEN": h.s.Token("ada"), console.LedgerTokenName: h.env[console.LedgerTokenName], "USER": "ada"}
			}
			h.git(h.dir, "checkout", "-q", "topic")
			h.git(h.dir, "update-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/topic")
			for _, args := range [][]string{{"review", "--push", "--policy-ref", "refs/remotes/origin/main", "--patch", h.write("more.patch", addition("more.txt", "more\n"))}, {"sync"}, {"list", "--push"}} {
				h.does(args...)
			}
			if h.s.Ref(ledgers, fmt.Sprintf("refs/agent/ledger-%d", h.id)) == "" {
				t.Errorf("%q: the ledger is not there", hostile)
			}
			h.noLedger(site, "eve/ledgers")
		}
	}
}

// TestT86LedgerElsewhereOfStaleClone: the Policy is the remote's as it is now, and not as this clone last saw it.
func TestT86LedgerElsewhereOfStaleClone(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.s.Repository(githubtest.NewRepository{Name: ledgers, Private: true, Files: map[string]string{"README.md": "# Ledgers\n"}})
	h.ledgerToken("write", ledgers)
	h.policyOn("ada", "main", "version: 1\nledger: {repository: "+ledgers+"}\n")
	h.does("review", "--push", "--patch", h.write("more.patch", addition("more.txt", "more\n")))
	h.noLedger(site)
	if h.refs(ledgers) == "" {
		t.Error("the ledger is not there")
	}
}

// TestLedgerElsewhereWithoutToken: where nobody can be asked, the clone's configuration has the number of each
// remote's repository; and without it nothing is done.
func TestLedgerElsewhereWithoutToken(t *testing.T) {
	long(t)
	t.Parallel()
	h := newElsewhere(t)
	h.ledgerToken("write", ledgers)
	h.env = map[string]string{"HOME": h.env["HOME"], "GIT_CONFIG_NOSYSTEM": "1", console.LedgerTokenName: h.env[console.LedgerTokenName], "USER": "ada"}
	review := []string{"review", "--push", "--patch", h.write("more.patch", addition("more.txt", "more\n"))}
	key := "remote.origin.repositoryId"
	for _, number := range []string{"", "0", "-1", "1x", " ", "01", "9/../8", "99999999999999999999"} {
		if number != "" {
			h.git(h.dir, "config", key, number)
		}
		code, stdout, stderr := h.run(review...)
		if code != console.ExitIO || number == "" && !(strings.Contains(stderr, "hint: set COUNTERSIGN_TOKEN to a token that may read the repository\n") && strings.Contains(stderr, key)) {
			t.Errorf("%q: %d %s%s", number, code, stdout, stderr)
		}
	}
	h.git(h.dir, "remote", "add", "upstream", h.s.URL+"/"+site+".git")
	h.git(h.dir, "config", key, fmt.Sprint(h.id))
	if code, _, stderr := h.run(append(review, "--remote", "upstream")...); code != console.ExitIO || !strings.Contains(stderr, "remote.upstream.repositoryId") {
		t.Errorf("the number of another remote: %d %s", code, stderr)
	}
	if refs := h.refs(ledgers); refs != "" {
		t.Errorf("%s has %s", ledgers, refs)
	}
	h.does(review...)
	if h.s.Ref(ledgers, fmt.Sprintf("refs/agent/ledger-%d", h.id)) == "" {
		t.Errorf("%s has %s", ledgers, h.refs(ledgers))
	}
	h.noLedger(site, "eve/ledgers")
}

// TestT86NumberOfAnotherHost: where the Policy names a repository for the ledger, the number of this one is asked for; and no
// server is sent a token for another, also where only a ledger is read.
func TestT86NumberOfAnotherHost(t *testing.T) {
	t.Parallel()
	h := newElsewhere(t)
	ours, err := url.Parse(h.s.URL)
	check(t, err)
	pass := httputil.NewSingleHostReverseProxy(ours)
	var sent atomic.Pointer[string]
	eve := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := r.Header.Get("Authorization"); token != "" {
			what := r.URL.Path + " " + token
			sent.Store(&what)
		}
		r.Header.Del("Authorization")
		pass.ServeHTTP(w, r)
	}))
	defer eve.Close()
	h.git(h.dir, "remote", "add", "eve", eve.URL+"/"+site+".git")
	h.env = map[string]string{"HOME": h.env["HOME"], "GIT_CONFIG_NOSYSTEM": "1", "COUNTERSIGN_TOKEN": h.s.Token("ada"), console.LedgerTokenName: h.ledgerToken("write", ledgers), "USER": "ada"}
	for _, remote := range []string{"eve", eve.URL + "/" + site + ".git"} {
		for _, args := range [][]string{{"list", "--push"}, {"sync"}} {
			code, stdout, stderr := h.run(append(args, "--forge", "gitea", "--remote", remote)...)
			if code != console.ExitIO || !strings.Contains(stderr, "(COUNTERSIGN_TOKEN_HOST names its host") {
				t.Errorf("%q: %d %s%s", args, code, stdout, stderr)
			}
			if what := sent.Load(); what != nil {
				t.Errorf("%q: sent %s", args, *what)
			}
		}
	}
}

// TestLedgerElsewhereMoves: a ledger that moves there has to descend from what was seen before, by this clone and by
// the workflow; one that begins anew is refused.
func TestLedgerElsewhereMoves(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	h.s.Repository(githubtest.NewRepository{Name: ledgers, Private: true, Files: map[string]string{"README.md": "# Ledgers\n"}})
	h.propose(greetFix)
	h.does("list", "--push")
	h.policyOn("ada", "main", "version: 1\nledger: {repository: "+ledgers+"}\n")
	h.git(h.dir, "fetch", "-q")
	h.ledgerToken("write", ledgers)
	h.env["GITHUB_REF"] = "refs/heads/main"
	for _, args := range [][]string{{"list", "--push"}, {"settle", "--pr", fmt.Sprint(h.pr)}} {
		if code, stdout, stderr := h.run(args...); code != console.ExitFailed || !strings.Contains(stderr, "is gone") {
			t.Errorf("%q: %d %s%s", args, code, stdout, stderr)
		}
	}
	if h.refs(ledgers) != "" {
		t.Errorf("a new one was begun: %s", h.refs(ledgers))
	}
	there := fmt.Sprintf("refs/agent/ledger-%d", h.id)
	h.git(h.dir, "fetch", "-q", "origin", "+refs/agent/ledger:refs/moving")
	h.git(h.dir, "push", "-q", strings.Replace(h.s.URL, "://", "://x:"+h.env[console.LedgerTokenName]+"@", 1)+"/"+ledgers+".git", "refs/moving:"+there)
	h.s.Git(site, "update-ref", "-d", "refs/agent/ledger")
	if code, stdout, stderr := h.run("list", "--push"); code != 0 || !strings.Contains(stdout, "tx_") {
		t.Errorf("once it is there: %d %s%s", code, stdout, stderr)
	}
	h.settle(console.ExitPending, "--no-gate")
	h.noLedger(site)
}

// TestT86LedgerElsewhereStaysThere: neither an artifact with the clone nor a site gives the ledger to those who may read
// the repository.
func TestT86LedgerElsewhereStaysThere(t *testing.T) {
	long(t)
	t.Parallel()
	h := newElsewhere(t)
	h.policyOn("ada", "main", "version: 1\nledger: {repository: "+ledgers+"}\ncommands: {run: [\"true\"]}\n")
	h.clone()
	token := h.ledgerToken("write", ledgers)
	_, fingerprint := h.propose(greetFix)
	h.says("ada", "/approve "+fingerprint)
	h.clone()
	h.env[console.LedgerTokenName] = token
	out := h.settle(console.ExitRefused, "--no-gate")
	if len(out.NeedsChecks) > 0 {
		t.Errorf("a job is started with the ledger: %+v", out)
	}
	if code, stdout, stderr := h.run("settle", "--no-gate", "--all"); code != console.ExitRefused || !strings.Contains(stderr, "is handed the ledger") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	h.clone()
	h.env[console.LedgerTokenName] = token
	dir := filepath.Join(t.TempDir(), "site")
	h.env["INPUT_STAGE"], h.env["INPUT_OUT"], h.env["GITHUB_OUTPUT"] = "site", dir, h.write("output", "")
	if code, stdout, stderr := h.run("action"); code != console.ExitRefused || !strings.Contains(stderr, " init --pages --redact\n") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("pages were written")
	}
	h.env["INPUT_REDACT"] = "true"
	h.does("action")
	h.fetchesElsewhere(filepath.Join(dir, "tx", out.Transactions[0].ID+".html"))
}

// TestLedgerElsewhereDoctor: a ledger on a branch is on one with the number there; a token that may only read records nothing in
// another; and doctor looks at the repository that keeps the ledger: whether it can be read and written, who may read it, and its rules.
func TestLedgerElsewhereDoctor(t *testing.T) {
	long(t)
	t.Parallel()
	h := newElsewhere(t)
	h.env = map[string]string{"HOME": h.env["HOME"], "GITHUB_API_URL": h.s.API(), "GIT_CONFIG_NOSYSTEM": "1", "COUNTERSIGN_TOKEN": h.s.Token("ada"), "USER": "ada"}
	doctor := func(lines ...string) {
		t.Helper()
		code, stdout, stderr := h.run("doctor")
		for _, line := range lines {
			if !strings.Contains(stdout, line) {
				t.Errorf("%d: want %q: %s%s", code, line, stdout, stderr)
			}
		}
	}
	doctor("fails  the ledger is kept in "+ledgers+", and it cannot be read: ", "docs/ledger.md, A ledger in another repository, says what it takes")
	h.ledgerToken("write", ledgers)
	more := []string{"review", "--push", "--patch", h.write("more.patch", addition("more.txt", "more\n"))}
	if code, stdout, stderr := h.run(append(more, "--ledger-ref", "refs/heads/countersign-ledger")...); code != 0 || h.s.Ref(ledgers, fmt.Sprintf("refs/heads/countersign-ledger-%d", h.id)) == "" {
		t.Errorf("on a branch: %d %s%s, %s", code, stdout, stderr, h.refs(ledgers))
	}
	before := h.refs(ledgers)
	h.ledgerToken("read", ledgers)
	if code, stdout, stderr := h.run(more...); code != console.ExitIO || !strings.Contains(stderr, ledgers) || !strings.Contains(stderr, "hint: set "+console.LedgerTokenName) || h.refs(ledgers) != before || strings.Contains(before, "\n") {
		t.Errorf("with a token that may read: %d %s%s, %s", code, stdout, stderr, h.refs(ledgers))
	}
	h.noLedger(site)
	doctor(fmt.Sprintf("ok     the ledger is kept in %s, on refs/agent/ledger-%d, and can be read", ledgers, h.id), "fails  the token may not write to "+ledgers)
	h.ledgerToken("write", ledgers)
	doctor("ok     the ledger is kept in "+ledgers, fmt.Sprintf("note   no ruleset reaches refs/agent/ledger-%d", h.id))
	h.s.Repository(githubtest.NewRepository{Name: "acme/public", Files: map[string]string{"README.md": "# Ledgers\n"}})
	h.policyOn("ada", "main", "version: 1\nledger: {repository: acme/public}\n")
	h.git(h.dir, "fetch", "-q")
	h.ledgerToken("write", "acme/public")
	doctor("fails  everybody may read the ledger in acme/public")
}

// TestPlaceCosts: a command that shares the ledger asks for one list of refs more than it takes to read the ledger, and
// fetches nothing of code that is here; a command that shares nothing asks nothing.
func TestPlaceCosts(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	h.propose(greetFix)
	h.clone()
	h.does("sync")
	asked := func(args ...string) (lists, others int) {
		t.Helper()
		h.s.ResetRequests()
		h.does(args...)
		for _, r := range h.s.Requests() {
			if strings.HasSuffix(r.Path, "/info/refs") {
				lists++
			} else {
				others++
			}
		}
		return lists, others
	}
	if lists, others := asked("list", "--push"); lists != 2 || others != 0 {
		t.Errorf("list --push: %d lists of refs, %d other requests", lists, others)
	}
	if lists, others := asked("list", "--no-push"); lists+others != 0 {
		t.Errorf("list --no-push: %d lists of refs, %d other requests", lists, others)
	}
}
