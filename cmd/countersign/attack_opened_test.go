package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// Attacks on pull requests that the program opens and, with merge: auto, merges
// itself (docs/pull-requests.md). A world has many of them, one after the other.

const autoMerge = "apply: {to: pull_request, merge: auto}\n"

// adds is a patch that adds a file.
func adds(name string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+%[1]s\n", name)
}

// next has another patch proposed, which becomes another pull request.
func (g *green) next(diff string) {
	g.Helper()
	before := g.s.Newest(site).Number
	g.env["GITHUB_API_URL"], g.env["GITHUB_GRAPHQL_URL"] = g.s.API(), g.s.GraphQL()
	g.on(g.proposedBy(bundleOf(diff, ""), githubtest.NewWorkflowRun{HeadBranch: "main", Event: "schedule"}))
	code, out, printed := g.action("settle")
	opened := g.s.Newest(site)
	if g.pr, g.branch = opened.Number, opened.Branch; code != 0 || g.pr == before {
		g.Fatalf("no pull request was opened: %d %s", code, printed)
	}
	g.tx, g.fingerprint = out["transaction"], out["fingerprint"]
	g.event("workflow_dispatch", nil)
}

// wantMerged wants the pull request to be merged, or not, and its transaction to
// have a status.
func (g *green) wantMerged(what string, merged bool, status string) {
	g.Helper()
	if got := g.status(g.tx); g.s.Pull(site, g.pr).Merged != merged || got != status {
		g.Errorf("%s: merged %v, and %s is %s; want %v, %s\n%s", what, !merged, g.tx, got, merged, status, g.comment())
	}
}

// unmoved wants main to be where it was.
func (g *green) unmoved(what, main string) {
	g.Helper()
	if got := g.s.Ref(site, "refs/heads/main"); got != main {
		g.Errorf("%s: main moved", what)
	}
}

// before does something right before the next request of a method to a path with
// that in it. It may ask GitHub as well.
func (h *hub) before(method, part string, do func()) {
	h.Helper()
	to, err := url.Parse(h.s.URL)
	check(h, err)
	var done atomic.Bool
	forward := httputil.NewSingleHostReverseProxy(to)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method && strings.Contains(r.URL.Path, part) && done.CompareAndSwap(false, true) {
			do()
		}
		forward.ServeHTTP(w, r)
	}))
	h.Cleanup(proxy.Close)
	h.Cleanup(func() {
		if !done.Load() {
			h.Errorf("nothing asked %s %s", method, part)
		}
	})
	h.env["GITHUB_API_URL"], h.env["GITHUB_GRAPHQL_URL"] = proxy.URL+"/api/v3", proxy.URL+"/api/graphql"
}

// T03, T10, T65: only a person's own Approve of exactly this head merges anything.
func TestT03GreenButton(t *testing.T) {
	long(t)
	t.Parallel()
	g := newGreen(t, autoMerge)
	main, head := g.s.Ref(site, "refs/heads/main"), g.s.Pull(site, g.pr).Head
	g.s.Bot("helper[bot]")
	g.s.Role(site, "helper[bot]", "admin")
	g.person("dan", "write")
	g.person("max", "maintain")
	g.guards(asks)
	g.reviews("github-actions[bot]", "APPROVED", "") // GitHub's setting lets it, as it opened the pull request
	g.reviews("helper[bot]", "APPROVED", "")
	g.reviews("eve", "APPROVED", "")
	g.s.Dismiss(g.reviews("dan", "APPROVED", ""))
	g.later()
	g.s.Review(githubtest.NewComment{Repository: site, Number: g.pr, By: "ada", State: "APPROVED", Commit: main})
	g.s.Review(githubtest.NewComment{Repository: site, Number: g.pr, By: "max", State: "APPROVED", Email: true})
	g.guards(asks, "its author is not a human account", "has read permission", "was dismissed", "is of another commit", "sent by e-mail")
	g.reviews("max", "CHANGES_REQUESTED", "")
	g.unmoved("nobody's Approve counts", main)

	g.s.Draft(site, g.pr, true)
	g.reviews("ada", "APPROVED", "")
	g.guards(passes, "it is a draft")
	g.s.Draft(site, g.pr, false)
	release := g.s.Push(githubtest.NewCommit{Repository: site, Branch: "release", By: "bob"})
	g.s.Retarget(site, g.pr, "release")
	g.reviews("ada", "APPROVED", "")
	g.guards(passes, "it is to another branch than the default one")
	if g.s.Ref(site, "refs/heads/release") != release {
		t.Error("it was merged into another branch than it was opened for")
	}
	g.s.Retarget(site, g.pr, "main")

	g.pushes("bob", g.branch, "greet.txt", "backdoor\n") // after the approval, before anybody looked
	g.guards(asks, "is of another commit")
	g.reviews("ada", "APPROVED", "")
	g.guards(passes, "its diff is no longer the patch that it was opened for")
	g.s.Git(site, "update-ref", "refs/heads/"+g.branch, head) // forced back
	g.guards(asks, "is from before this was proposed")
	g.s.ClosePull(site, g.pr)
	g.settle(0)
	g.wantMerged("closed", false, "interrupted")
	g.s.ReopenPull(site, g.pr)
	g.guards(asks, "is from before this was proposed")
	g.unmoved("what counted for something else", main)

	g.reviews("ada", "APPROVED", "")
	g.settle(0)
	g.wantMerged("an honest Approve", true, "completed")
	if got := g.s.File(site, "main", "greet.txt"); got != "one\nhello, world\nthree\n" {
		t.Errorf("main has %q", got)
	}
	g.audits()
}

// T06: what people merge themselves is held to what was approved.
func TestT06GreenMergedByHand(t *testing.T) {
	long(t)
	t.Parallel()
	g := newGreen(t, toPulls)
	g.guards(asks)
	for _, how := range []string{"merge", "squash", "rebase"} {
		g.reviews("ada", "APPROVED", "")
		g.guards(passes)
		g.s.Merge(site, g.pr, "ada", how)
		g.settle(0)
		g.wantMerged(how, true, "completed")
		g.next(adds(how))
	}
	commit := g.s.Merge(site, g.pr, "bob", "squash")
	g.settle(0)
	g.wantMerged("nobody approved it", true, "interrupted")
	if !strings.Contains(g.comment(), "without every approval") {
		t.Errorf("the comment:\n%s", g.comment())
	}
	g.explains(commit, console.ExitFailed)

	g.next(adds("more"))
	g.reviews("ada", "APPROVED", "")
	g.guards(passes)
	g.pushes("bob", g.branch, "backdoor", "x\n")
	commit = g.s.Merge(site, g.pr, "bob", "merge")
	g.settle(0)
	g.wantMerged("another commit was pushed", true, "interrupted")
	if !strings.Contains(g.comment(), "what was merged is not exactly that") {
		t.Errorf("the comment:\n%s", g.comment())
	}
	g.explains(commit, console.ExitFailed)

	// Closed, it can be proposed again; denied, it cannot.
	g.next(adds("again"))
	g.s.ClosePull(site, g.pr)
	g.settle(0)
	g.wantMerged("closed", false, "interrupted")
	if g.s.Ref(site, "refs/heads/"+g.branch) == "" {
		t.Error("its branch is gone")
	}
	g.next(adds("again"))
	g.says("ada", "/deny "+g.fingerprint+" not this")
	g.guards(broken)
	g.nightly(bundleOf(adds("again"), ""), 0)
	if n := g.s.Newest(site).Number; n != g.pr {
		t.Errorf("what was denied is pull request %d again", n)
	}
	g.audits()
}

// T06, T61: whatever becomes of the call that merges, what was merged is told for what
// it is, and nothing is merged that is not approved in that moment.
func TestT61GreenMergeFaults(t *testing.T) {
	long(t)
	t.Parallel()
	g := newGreen(t, autoMerge)
	g.guards(asks)
	const merge = "/merge"
	put := func(f githubtest.Fault) func() {
		f.Method = "PUT"
		return func() { g.s.Fail(f) }
	}
	head := func() string { return g.s.Pull(site, g.pr).Head }
	for _, test := range []struct {
		what   string
		do     func()
		code   int
		merged bool
		status string
		told   string // in the comment
		again  bool   // the next run merges it
	}{
		{"two at once", func() { g.before("PUT", merge, func() { g.run("settle", "--pr", fmt.Sprint(g.pr)) }) }, 0, true, "completed", "", false},
		{"500, not merged", put(githubtest.Fault{Status: 500, Times: -1}), console.ExitIO, false, "proposed", "so this is not finished", true},
		{"500 once, not merged", put(githubtest.Fault{Status: 500}), 0, true, "completed", "", false},
		{"no answer, merged", put(githubtest.Fault{Kind: githubtest.Cut, After: true}), 0, true, "completed", "", false},
		{"merged, and unread", func() {
			g.before("PUT", merge, func() { g.s.Fail(githubtest.Fault{Path: "/api/graphql", Status: 502, Times: -1}) })
		}, console.ExitIO, true, "proposed", "", true},
		{"merged, and its commit is not told", func() {
			null := githubtest.Fault{Contains: "mergeCommit", Kind: githubtest.GraphQLNull, Text: "repository.pullRequest.mergeCommit", Times: -1}
			g.before("PUT", merge, func() { g.s.Fail(null) })
		}, console.ExitIO, true, "proposed", "", true},
		{"merged, and told late as which commit", func() {
			null := githubtest.Fault{Contains: "mergeCommit", Kind: githubtest.GraphQLNull, Text: "repository.pullRequest.mergeCommit", Times: 2}
			g.before("PUT", merge, func() { g.s.Fail(null) })
		}, 0, true, "completed", "", false},
		{"merged, and the approver has lost access", func() {
			g.before("PUT", merge, func() { g.s.Role(site, "ada", "read") })
		}, 0, true, "completed", "", false},
		{"merged, and a read of Git fails", func() {
			g.s.Role(site, "ada", "write")
			g.before("PUT", merge, func() { g.s.Fail(githubtest.Fault{Path: "/acme/site", Status: 502, Times: -1}) })
		}, console.ExitIO, true, "proposed", "", true},
		{"merged, and a read of Git fails once", func() {
			g.before("PUT", merge, func() { g.s.Fail(githubtest.Fault{Path: "/acme/site", Status: 502}) })
		}, 0, true, "completed", "", false},
		{"pushed in that moment", func() {
			g.before("PUT", merge, func() { g.pushes("bob", g.branch, "backdoor", "x\n") })
		}, 0, false, "proposed", "somebody pushed in that moment", false},
		{"dismissed in that moment", func() {
			g.before("PUT", merge, func() { g.s.Dismiss(g.reviews("ada", "APPROVED", "")) })
		}, console.ExitFailed, true, "interrupted", "no longer stood when that was recorded", false},
		{"dismissed before the check was written", func() {
			g.before("PATCH", "/check-runs/", func() { g.s.Dismiss(g.reviews("ada", "APPROVED", "")) })
		}, console.ExitPending, false, "awaiting_approval", "was dismissed", false},
		{"retargeted before the check was written", func() {
			g.pushes("bob", "release", "release", head())
			g.before("PATCH", "/check-runs/", func() { g.s.Retarget(site, g.pr, "release") })
		}, 0, false, "proposed", "was changed in that moment", false},
		{"main moved in that moment", func() {
			g.before("PUT", merge, func() { g.pushes("bob", "main", "elsewhere", head()) })
		}, 0, true, "completed", "", false},
	} {
		g.reviews("ada", "APPROVED", "")
		test.do()
		if code, stdout, stderr := g.run("settle", "--json", "--pr", fmt.Sprint(g.pr)); code != test.code {
			t.Errorf("%s: exit code %d, want %d: %s%s", test.what, code, test.code, stdout, stderr)
		}
		g.s.Heal()
		g.wantMerged(test.what, test.merged, test.status)
		if !strings.Contains(g.comment(), test.told) {
			t.Errorf("%s: the comment does not say %q:\n%s", test.what, test.told, g.comment())
		}
		if test.again {
			g.settle(0)
			g.wantMerged(test.what+", and once more", true, "completed")
		}
		g.next(adds(strings.ReplaceAll(test.what, " ", "-")))
	}
	// GitHub's own rules stay.
	g.s.Set(site, githubtest.Settings{ActionsOpenPulls: true, NoMerge: true, Checks: map[string][]string{"main": {"build"}}})
	g.reviews("ada", "APPROVED", "")
	g.settle(0)
	g.wantMerged("a check is missing", false, "proposed")
	if !strings.Contains(g.comment(), `Required status check "build" is expected`) {
		t.Errorf("the comment:\n%s", g.comment())
	}
	g.s.Set(site, githubtest.Settings{ActionsOpenPulls: true, NoMerge: true})
	g.settle(0)
	g.wantMerged("squashed", true, "completed")
	g.audits()
}

// T06: a base that has changed the patch's files is merged into by people alone; what changes in
// that very moment is merged with, and the change is the approved one.
func TestT06GreenBaseMoved(t *testing.T) {
	long(t)
	t.Parallel()
	g := newGreen(t, autoMerge)
	g.guards(asks)
	g.pushes("bob", "main", "greet.txt", "one\nhello\nthree\nfour\n")
	g.reviews("ada", "APPROVED", "")
	main := g.s.Ref(site, "refs/heads/main")
	g.guards(passes, "its files have changed on main since")
	g.unmoved("its files changed before", main)

	g.s.ClosePull(site, g.pr)
	long := strings.Repeat("line\n", 20)
	g.pushes("bob", "main", "long.txt", long)
	g.next("diff --git a/long.txt b/long.txt\n--- a/long.txt\n+++ b/long.txt\n@@ -1,3 +1,3 @@\n-line\n+first\n line\n line\n")
	g.reviews("ada", "APPROVED", "")
	g.before("PUT", "/merge", func() { g.pushes("bob", "main", "long.txt", long+"last\n") })
	g.settle(0)
	g.wantMerged("its files changed in that moment", true, "completed")
	if got := g.s.File(site, "main", "long.txt"); !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "\nlast\n") {
		t.Errorf("main has %q", got)
	}
	g.audits()
}

// transaction has pat record a patch that becomes no pull request yet.
func (g *green) transaction(diff string) {
	g.Helper()
	token := g.env["INPUT_TOKEN"]
	g.env["INPUT_TOKEN"] = g.s.Token("pat")
	g.s.Fail(githubtest.Fault{Method: "GET", Path: "/api/v3/repos/acme/site", Status: 403})
	code, _, stderr := g.run("propose", "--patch", g.write("fix.patch", diff), "--summary", "Closes #1 @acme/all [skip ci] <b>", "--to", "pull-request")
	if g.env["INPUT_TOKEN"] = token; code != console.ExitIO {
		g.Fatalf("propose: %d %s", code, stderr)
	}
	_, stdout, _ := g.run("list", "-q", "--limit", "1")
	g.from = strings.TrimSpace(stdout)
	if g.branch = "countersign/" + g.from; g.s.Ref(site, "refs/heads/"+g.branch) != "" {
		g.Fatal("it has a branch already")
	}
}

// opens makes a pull request of it.
func (g *green) opens(want int) string {
	g.Helper()
	code, stdout, stderr := g.run("propose", g.from, "--to", "pull-request")
	if code != want {
		g.Errorf("propose: exit code %d, want %d: %s%s", code, want, stdout, stderr)
	}
	return stdout + stderr
}

// T05, T16, T68: who is faster on the way to the pull request gains nothing, nor who has
// a run that looks like the default branch's.
func TestT05GreenOpening(t *testing.T) {
	long(t)
	t.Parallel()
	g := newGreen(t, autoMerge)
	g.guards(asks)
	opened := g.s.Newest(site).Number
	g.person("pat", "write")

	g.s.Fork(site, "eve/site")
	evil := g.pushes("bob", "evil", "evil", "x\n")
	tip := g.s.Ref(site, "refs/agent/ledger")
	for what, n := range map[string]githubtest.NewWorkflowRun{
		"a fork's":                 {HeadRepository: "eve/site", HeadBranch: "main", Event: "push"},
		"of a tag main":            {HeadBranch: "main", HeadSHA: evil, Event: "workflow_dispatch"},
		"of a pull request's main": {HeadBranch: "main", Event: "pull_request"},
		"that failed":              {HeadBranch: "main", Event: "schedule", Conclusion: "failure"},
	} {
		g.on(g.proposedBy(bundleOf(adds("never"), ""), n))
		code, _, printed := g.action("settle")
		if g.s.Ref(site, "refs/agent/ledger") != tip || g.s.Newest(site).Number != opened {
			t.Errorf("a run %s proposed: %d %s", what, code, printed)
		}
	}
	const secret = "ghp_" + "Zx81mQp0LkTy47VbNc63RdWs29HgJf5aEuOi"
	g.on(g.proposedBy(bundleOf(strings.Replace(adds("config"), "+config\n", "+TOKEN="+secret+"\n", 1), ""), githubtest.NewWorkflowRun{HeadBranch: "main", Event: "schedule"}))
	if code, _, printed := g.action("settle"); code != console.ExitRefused || !strings.Contains(printed, "looks like a secret") || strings.Contains(printed+g.s.Git(site, "log", "-p", "--all"), secret) {
		t.Errorf("a secret became a branch: %d %s", code, printed)
	}
	// The job that goes on with one transaction looks at that one, whatever the run handed over that started it.
	g.on(g.proposedBy("{", githubtest.NewWorkflowRun{HeadBranch: "main", Event: "schedule"}))
	if code, out, printed := g.action("settle", "transaction="+g.tx); code != 0 || out["transaction"] != g.tx {
		t.Errorf("a bundle that cannot be read keeps another transaction from going on: %d %s", code, printed)
	}
	g.clone()
	// A branch of that name, made or moved before.
	g.transaction(adds("one"))
	g.pushes("bob", g.branch, "backdoor", "x\n")
	if told := g.opens(console.ExitRefused); !strings.Contains(told, "somebody moved it") || g.s.Newest(site).Number != opened {
		t.Errorf("opened from somebody's branch: %s", told)
	}
	// An answer that is lost, and two at once: one pull request.
	g.transaction(adds("two"))
	g.s.Fail(githubtest.Fault{Method: "POST", Path: "/api/v3/repos/acme/site/pulls", Status: 502, After: true})
	g.opens(0)
	g.opens(0) // it is done, and the pull request is told again
	g.transaction(adds("three"))
	g.before("POST", "/pulls", func() { g.opens(0) })
	g.opens(0)
	if n := g.s.Newest(site).Number; n != opened+2 {
		t.Errorf("%d pull requests were opened", n-opened)
	}
	g.clone()
	// A fork's branch of that name is somebody else's.
	g.transaction(adds("four"))
	g.s.Push(githubtest.NewCommit{Repository: "eve/site", Branch: g.branch, By: "eve", Files: map[string]string{"four": "four\n"}}) // the very patch
	g.pr = g.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "eve", Head: g.branch, HeadRepository: "eve/site", Title: "Mine"}).Number
	fork := g.pr
	g.happens(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: g.pr})
	g.guards(asks)
	g.reviews("ada", "APPROVED", "")
	g.guards(passes)
	if g.s.Pull(site, fork).Merged {
		t.Error("a fork's pull request was merged")
	}
	// Whatever its owner pushes there: another history cannot be compared.
	tree := strings.TrimSpace(g.s.Git("eve/site", "rev-parse", "main^{tree}"))
	g.s.Git("eve/site", "update-ref", "refs/heads/"+g.branch, strings.TrimSpace(g.s.Git("eve/site", "-c", "user.name=eve", "-c", "user.email=eve@example.org", "commit-tree", "-m", "another history", tree)))
	g.clone()
	g.opens(0)
	if g.find(); g.pr == fork || g.s.Pull(site, g.pr).Author != "github-actions[bot]" {
		t.Errorf("it became pull request %d", g.pr)
	}
	if got := g.s.Pull(site, g.pr); strings.Contains(got.Title, "[skip ci]") || strings.Contains(got.Text, "#1") || strings.Contains(got.Text, "@acme") || strings.Contains(got.Text, "<b>") {
		t.Errorf("the pull request says %q and %q", got.Title, got.Text)
	}
	// Somebody opens it first, and is its author; whom the mail names is not.
	named := fmt.Sprintf("From: mia <%d+mia@users.noreply.127.0.0.1>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: [PATCH] five\n\n---\n", g.s.User("mia").ID)
	g.s.Role(site, "mia", "write")
	g.transaction("From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n" + named + adds("five"))
	g.s.Fail(githubtest.Fault{Method: "POST", Path: "/api/v3/repos/acme/site/pulls", Status: 403})
	g.opens(console.ExitIO)
	g.pr = g.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: g.branch, Title: "Bob's"}).Number
	g.opens(0)
	g.guards(asks)
	g.reviews("bob", "APPROVED", "")
	g.guards(asks, "its author is the proposer")
	g.reviews("mia", "APPROVED", "")
	g.settle(0)
	g.wantMerged("opened by bob", true, "completed")
	// A run that ends after it opened one, which is merged before the next run: nothing is left open.
	g.transaction(adds("six"))
	g.before("POST", "/pulls", func() { g.s.Fail(githubtest.Fault{Path: "/api/graphql", Status: 502, Times: 8}) })
	g.opens(console.ExitIO)
	g.s.Heal()
	g.find()
	g.guards(asks)
	g.reviews("ada", "APPROVED", "")
	g.settle(0)
	g.wantMerged("opened by a run that ended", true, "completed")
	last := g.s.Newest(site).Number
	g.opens(console.ExitRefused)
	if got := g.status(g.from); got != "interrupted" || g.s.Newest(site).Number != last {
		t.Errorf("after its pull request was merged %s is %s", g.from, got)
	}
	g.audits()
}

// T83: what a run of the default branch handed over is found by the sweep, where the settle that followed
// it failed, and is proposed once, whatever becomes of that; and no run that looks like one.
func TestT83SweepOpens(t *testing.T) {
	long(t)
	t.Parallel()
	g := newGreen(t, toPulls)
	opened := g.s.Newest(site).Number
	sweeps := func(what string, want int, says string) {
		t.Helper()
		g.later()
		g.on(githubtest.Event{Name: "schedule"})
		code, _, printed := g.action("sweep")
		if got := g.s.Newest(site).Number; code != 0 || got != want || !strings.Contains(printed, says) {
			t.Errorf("%s: exit code %d, the newest pull request is %d, want %d: %s", what, code, got, want, printed)
		}
	}
	sweeps("what was settled", opened, "")
	g.s.Fork(site, "eve/site")
	evil := g.pushes("bob", "evil", "evil", "x\n")
	for what, n := range map[string]githubtest.NewWorkflowRun{
		"a fork's":                 {HeadRepository: "eve/site", HeadBranch: "main", Event: "push"},
		"of another branch":        {HeadBranch: "evil", Event: "push"},
		"of a pull request's main": {HeadBranch: "main", Event: "pull_request"},
		"that failed":              {HeadBranch: "main", Event: "schedule", Conclusion: "failure"},
	} {
		g.proposedBy(bundleOf(adds("never"), ""), n)
		sweeps("a run "+what, opened, "")
	}
	g.proposedBy(bundleOf(adds("never"), ""), githubtest.NewWorkflowRun{HeadBranch: "main", HeadSHA: evil, Event: "workflow_dispatch"})
	sweeps("a run of a tag main", opened, "which main does not have")
	g.later()
	g.pushes("ada", "main", "next.txt", "x\n")
	g.proposedBy(bundleOf(adds("lost"), ""), githubtest.NewWorkflowRun{HeadBranch: "main", Event: "schedule"})
	sweeps("a run whose event was lost", opened+1, "")
	sweeps("once more", opened+1, "")
	g.find()
	g.s.ClosePull(site, g.pr)
	sweeps("once it is closed", opened+1, "")
	sweeps("after that", opened+1, "")
	g.audits()
}
