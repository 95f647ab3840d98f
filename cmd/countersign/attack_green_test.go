package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/lookup"
)

// A green is a repository where a scheduled job proposes greetFix, which becomes a pull
// request: pr is its number, from the branch of the transaction from.
type green struct {
	*attack
	from, branch string
}

const toPulls = "apply: {to: pull_request}\n"

// newGreen has that pull request opened and asked about.
func newGreen(t *testing.T, policy string) *green {
	t.Helper()
	g := &green{attack: &attack{hub: newHub(t)}}
	g.policy(policy)
	g.s.Set(site, githubtest.Settings{ActionsOpenPulls: true})
	g.nightly(bundleOf(greetFix, ""), 0)
	g.find()
	return g
}

// nightly is a scheduled run of the propose workflow that hands over a bundle, and the
// settle that it starts.
func (g *green) nightly(bundle string, want int) (printed string) {
	g.Helper()
	e := g.proposedBy(bundle, githubtest.NewWorkflowRun{HeadBranch: "main", Event: "schedule"})
	number, act := g.planned(e)
	if act != "true" {
		g.Fatalf("nothing to do after a run: %s", number)
	}
	code, _, printed := g.action("settle", "pr="+number)
	if code != want {
		g.Fatalf("settle: %d\n%s", code, printed)
	}
	return printed
}

// find takes the pull request that was opened last.
func (g *green) find() {
	opened := g.s.Newest(site)
	g.pr, g.branch = opened.Number, opened.Branch
	g.from = strings.TrimPrefix(g.branch, "countersign/")
	g.clone()
}

// A job's patch becomes a pull request, a person presses Approve and merges, and the
// record is proved.
func TestGreenReviewIsEnough(t *testing.T) {
	long(t)
	t.Parallel()
	g := newGreen(t, toPulls)
	opened := g.s.Pull(site, g.pr)
	if opened.Author != "github-actions[bot]" || opened.Title != "greet" || !strings.Contains(opened.Text, "press Approve") || !strings.Contains(opened.Text, "a push of another diff asks again") || g.status(g.from) != "superseded" {
		t.Errorf("%+v; its transaction is %s", opened, g.status(g.from))
	}
	g.guards(asks)
	g.nightly(bundleOf(greetFix, ""), 0) // the same again
	if g.s.Newest(site).Number != g.pr {
		t.Error("the same patch was opened twice")
	}
	g.clone()
	g.reviews("ada", "APPROVED", "")
	g.guards(passes)
	if got := g.s.File(site, "main", "greet.txt"); got != "one\nhello\nthree\n" {
		t.Errorf("it was merged: %q", got)
	}
	g.s.Merge(site, g.pr, "ada", "squash")
	closed := githubtest.Event{Name: "workflow_run", Action: "completed", ID: g.runOf("countersign-events", githubtest.NewWorkflowRun{HeadBranch: g.branch, Event: "pull_request"})}
	if number, act := g.planned(closed); number != fmt.Sprint(g.pr) || act != "true" {
		t.Errorf("the end of the run for the closed pull request is about %q, act %s", number, act)
	}
	g.settle(0)
	if got := g.status(g.tx); got != "completed" {
		t.Errorf("%s is %s", g.tx, got)
	}
	g.audits()
}

// With merge: auto nobody presses more than Approve.
func TestGreenReviewMerges(t *testing.T) {
	t.Parallel()
	g := newGreen(t, "apply: {to: pull_request, merge: auto}\n")
	g.guards(asks)
	g.reviews("ada", "APPROVED", "")
	g.settle(0)
	if got := g.s.File(site, "main", "greet.txt"); got != "one\nhello, world\nthree\n" || g.status(g.tx) != "completed" {
		t.Errorf("%s is %s, and main has %q", g.tx, g.status(g.tx), got)
	}
	if said := g.s.Git(site, "log", "--format=%s", "refs/agent/ledger"); strings.Count(said, "gate: approved (1 of 1 approvals)") != 2 {
		t.Errorf("that the forge was asked right before the merge is not recorded:\n%s", said)
	}
	g.settle(0)
	g.audits()
}

// Whoever proposed a patch does not approve it, whoever's token opened its pull request.
func TestT10ProposerOfTheOpened(t *testing.T) {
	long(t)
	t.Parallel()
	g := &green{attack: &attack{hub: newHub(t)}}
	g.s.Set(site, githubtest.Settings{ActionsOpenPulls: true})
	g.person("bobby", "admin") // bob's other account, by the list of keys
	g.pushes("ada", "main", "allowed_signers", "bob,bobby ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBn3uC8uuzHPONgrQ5j4csTMhW8vbKr1atBmpAhQetS5\n")
	g.policy("approvals: {keys: allowed_signers}\n")
	token := g.token
	g.env["INPUT_TOKEN"] = g.s.Token("bob")
	g.s.Fail(githubtest.Fault{Method: "POST", Path: "/api/v3/repos/acme/site/pulls", Status: 403})
	if code, stdout, stderr := g.run("propose", "--patch", g.write("fix.patch", greetFix), "--to", "pull-request"); code != console.ExitIO {
		t.Fatalf("propose: %d %s%s", code, stdout, stderr)
	}
	g.env["INPUT_TOKEN"] = token
	_, stdout, _ := g.run("list", "--json")
	if code, stdout, stderr := g.run("propose", regexp.MustCompile(`tx_[0-9A-Z]{26}`).FindString(stdout), "--to", "pull-request"); code != 0 {
		t.Fatalf("propose: %d %s%s", code, stdout, stderr)
	}
	g.find()
	g.guards(asks)
	g.reviews("bob", "APPROVED", "")
	g.reviews("bobby", "APPROVED", "")
	g.s.Rename("bob", "robert")
	g.reviews("robert", "APPROVED", "")
	if out := g.guards(asks, "its author is the proposer"); len(out.Transactions) != 1 || len(out.Transactions[0].Verdict.Decisions) != 3 {
		t.Errorf("%+v", out)
	}
	g.reviews("ada", "APPROVED", "")
	g.guards(passes)
	g.audits()
}

// by makes the clone one of somebody's own, with their token and their Git identity.
func (g *green) by(login string) {
	g.Helper()
	for _, name := range []string{"GITHUB_ACTIONS", "CI", "INPUT_TOKEN", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REF"} {
		delete(g.env, name)
	}
	g.env["COUNTERSIGN_TOKEN"] = g.s.Token(login)
	g.git(g.dir, "config", "user.name", login)
	g.git(g.dir, "config", "user.email", login+"@example.org")
}

// What a clone's own identity proposed has no account: only that person opens it, with a
// person's token, and is its author.
func TestT10OpenedByHand(t *testing.T) {
	long(t)
	t.Parallel()
	g := &green{attack: &attack{hub: newHub(t)}}
	g.policy(toPulls)
	g.s.Set(site, githubtest.Settings{ActionsOpenPulls: true})
	g.by("bob")
	runs := func(want int, told string, args ...string) {
		t.Helper()
		if code, stdout, stderr := g.run(args...); code != want || !strings.Contains(stderr, told) {
			t.Fatalf("%v: exit code %d, want %d: %s%s", args, code, want, stdout, stderr)
		}
	}
	runs(0, "", "review", "--patch", g.write("fix.patch", greetFix))
	_, stdout, _ := g.run("list", "--json")
	tx := regexp.MustCompile(`tx_[0-9A-Z]{26}`).FindString(stdout)
	runs(console.ExitRefused, " propose "+lookup.ShortID(tx)+" --to pull-request", "apply", tx)
	branch := "refs/heads/countersign/" + tx
	g.git(g.dir, "config", "user.email", "ada@example.org")
	runs(console.ExitRefused, "the forge has no account of bob", "run", tx)
	g.git(g.dir, "config", "user.email", "bob@example.org")
	bobs := g.env["COUNTERSIGN_TOKEN"]
	g.env["COUNTERSIGN_TOKEN"] = g.token
	runs(console.ExitRefused, "the forge has no account of bob", "run", tx)
	if g.s.Ref(site, branch) != "" {
		t.Error("the branch was pushed")
	}
	g.env["COUNTERSIGN_TOKEN"] = bobs
	runs(console.ExitPending, "it is pull request 2 now", "run", tx)
	g.find()
	g.guards(asks)
	g.reviews("bob", "APPROVED", "")
	g.guards(asks, "its author is the proposer")
	g.reviews("ada", "APPROVED", "")
	g.guards(passes)
	runs(0, "it is pull request 2 now", "run", "--patch", g.write("fix.patch", greetFix)) // approved, and there is no more to do
	g.s.ClosePull(site, g.pr)
	g.settle(0)
	if got := g.status(g.tx); got != "interrupted" || g.s.Ref(site, branch) == "" {
		t.Errorf("%s is %s", g.tx, got)
	}
	g.audits()
}

// The sweep opens what waits for no pull request, and never what it must not.
func TestGreenSweep(t *testing.T) {
	long(t)
	t.Parallel()
	g := &green{attack: &attack{hub: newHub(t)}}
	g.s.Set(site, githubtest.Settings{ActionsOpenPulls: true})
	g.env["INPUT_TOKEN"] = g.s.Token("bob")
	g.s.Fail(githubtest.Fault{Method: "POST", Path: "/api/v3/repos/acme/site/pulls", Status: 403})
	g.run("propose", "--patch", g.write("fix.patch", greetFix), "--to", "pull-request")
	g.env["INPUT_TOKEN"] = g.token
	if code, _, stderr := g.run("settle", "--all"); code != 0 || g.s.Newest(site).Number != 1 {
		t.Fatalf("without the Policy: %d %s", code, stderr)
	}
	g.policy(toPulls)
	if code, stdout, stderr := g.run("settle", "--all"); code != console.ExitPending {
		t.Fatalf("settle --all: %d %s%s", code, stdout, stderr)
	}
	g.find()
	if g.pr != 2 || g.status(g.from) != "superseded" {
		t.Errorf("pull request %d; its transaction is %s", g.pr, g.status(g.from))
	}
	g.guards(asks)
	if code, stdout, stderr := g.run("settle", "--all"); code != console.ExitPending || g.s.Newest(site).Number != 2 {
		t.Errorf("again: %d %s%s", code, stdout, stderr)
	}
	g.audits()
}

// What a workflow's own token may not push is told once, with what to do, and keeps no later
// run from ending well.
func TestGreenWorkflowFile(t *testing.T) {
	long(t)
	t.Parallel()
	g := newGreen(t, toPulls)
	printed := g.nightly(bundleOf(adds(".github/workflows/new.yml"), ""), console.ExitRefused)
	if !strings.Contains(printed, "it changes workflow files, which GitHub lets no workflow's own token push") || !strings.Contains(printed, "permission workflows as push-token") {
		t.Errorf("what to do is not said: %s", printed)
	}
	g.event("workflow_dispatch", nil)
	if code, stdout, stderr := g.run("settle", "--all"); code != console.ExitPending || strings.Contains(stderr, "workflow files") {
		t.Errorf("the sweep: %d %s%s", code, stdout, stderr)
	}
	if g.s.Newest(site).Number != g.pr {
		t.Error("a pull request was opened")
	}
}
