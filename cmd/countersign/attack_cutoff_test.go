package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// cutOffs are places at which a report ends early.
var cutOffs = map[string][]githubtest.Fault{
	"at the check run": {
		{Status: 500, Path: "/api/v3/repos/acme/site/check-runs", Times: -1},
		{Status: 500, Method: "PATCH", Path: "/api/v3/repos/acme/site/issues/comments", Times: -1},
		{Status: 500, Method: "POST", Path: "/api/v3/repos/acme/site/issues/1/comments", Times: -1},
	},
	"at the comment": {{Status: 500, Method: "PATCH", Path: "/api/v3/repos/acme/site/issues/comments", Times: -1}},
}

// TestReportCutOff: what the forge was not told of a transaction that has ended is
// told by the next settle, or sweep, and then no more.
func TestReportCutOff(t *testing.T) {
	long(t)
	t.Parallel()
	for where, faults := range cutOffs {
		for _, command := range []string{"/approve", "/deny"} {
			for _, again := range [][]string{{"settle", "--pr", "1", "--no-gate"}, {"settle", "--all", "--no-gate"}} {
				if again[1] == "--all" && where != "at the check run" {
					continue // the others are alike
				}
				t.Run(fmt.Sprint(where, " ", command, " ", again[1]), func(t *testing.T) {
					t.Parallel()
					a := newAttack(t, "")
					a.says("ada", command+" "+a.fingerprint)
					for _, f := range faults {
						a.s.Fail(f)
					}
					if code, _, stderr := a.run("settle", "--pr", "1", "--no-gate"); code != console.ExitIO {
						t.Errorf("cut off: exit code %d: %s", code, stderr)
					}
					a.s.Heal()
					a.tellsEnd(again, map[string]string{"/approve": "completed", "/deny": "denied"}[command], map[string]string{"/approve": "applied", "/deny": "denied"}[command])
				})
			}
		}
	}
}

// tellsEnd wants a run to tell how the transaction ended, and the next to tell nothing.
func (a *attack) tellsEnd(again []string, status, said string) {
	a.Helper()
	if got := a.status(a.tx); got != status {
		a.Fatalf("the ledger says %s", got)
	}
	a.clone()
	a.does(again...)
	check := a.check("countersign/"+strings.TrimPrefix(a.fingerprint, "patchset:")[:12], a.s.Pull(site, a.pr).Head)
	for what, text := range map[string]string{"comment": a.comment(), "check run": check.Summary} {
		if !strings.Contains(text, "("+said+")") || strings.Contains(text, "0 of 1 approvals") {
			a.Errorf("the %s does not say %s: %s", what, said, text)
		}
	}
	done := a.state()
	a.clone()
	a.run(again...)
	a.wantState("once more", done)
}

// A check that passed is taken back by the next settle after one that recorded a
// denial of the pull request's own diff and was cut off, on whatever event, and by the
// sweep.
func TestGuardCutOff(t *testing.T) {
	long(t)
	t.Parallel()
	for what, f := range map[string]githubtest.Fault{
		"every check run": {Status: 500, Path: "/api/v3/repos/acme/site/check-runs", Times: -1},
		"the check":       {Status: 500, Path: "/api/v3/repos/acme/site/check-runs", Contains: `"name":"countersign"`, Times: -1},
	} {
		for _, again := range []string{"a comment", "the sweep"} {
			t.Run(what+", "+again, func(t *testing.T) {
				t.Parallel()
				a := newGuard(t, "")
				a.says("ada", "/approve "+a.fingerprint)
				a.guards(passes)
				a.later()
				said := a.says("ada", "/deny "+a.fingerprint+" no")
				a.s.Fail(f)
				a.happens(commented(said))
				if code, _, stderr := a.run("settle", "--pr", fmt.Sprint(a.pr)); code != console.ExitIO || a.status(a.tx) != "denied" {
					t.Fatalf("cut off: exit code %d, %s: %s", code, a.status(a.tx), stderr)
				}
				a.s.Heal()
				if again == "a comment" {
					a.happens(commented(a.says("eve", "/approve it")))
					if a.guards(broken); !strings.Contains(a.comment(), "Denied by ada: “no”") {
						a.Errorf("the denial is not told: %s", a.comment())
					}
					return
				}
				a.happens(githubtest.Event{Name: "schedule"})
				a.run("settle", "--all")
				if got := a.check("countersign", a.s.Pull(site, a.pr).Head); got.Conclusion != broken {
					t.Errorf("the check is %+v", got)
				}
			})
		}
	}
}

// A pull request that cannot be read keeps the sweep from none of the others.
func TestSweepGoesOn(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	a.s.Push(githubtest.NewCommit{Repository: site, Branch: "another", By: "bob", Files: map[string]string{"another.txt": "x\n"}})
	second := a.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "another", Base: "main", Title: "Another"}).Number
	for _, pr := range []int{a.pr, second} {
		if a.pr = pr; pr == second {
			a.tx, a.fingerprint = a.propose(strings.ReplaceAll(greetFix, "world", "all"))
		}
		a.says("ada", "/deny "+a.fingerprint)
		a.s.Fail(githubtest.Fault{Status: 500, Path: "/api/v3/repos/acme/site/check-runs", Times: -1})
		if code, _, stderr := a.run("settle", "--pr", fmt.Sprint(pr), "--no-gate"); code != console.ExitIO || a.status(a.tx) != "denied" {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		a.s.Heal()
	}
	a.clone()
	a.s.Fail(githubtest.Fault{Status: 500, Path: "/api/v3/repos/acme/site/issues/1/comments", Times: -1})
	code, _, stderr := a.run("settle", "--all", "--no-gate")
	a.s.Heal()
	check := a.check("countersign/"+strings.TrimPrefix(a.fingerprint, "patchset:")[:12], a.s.Pull(site, second).Head)
	if code != console.ExitIO || !strings.Contains(check.Summary, "(denied)") {
		t.Errorf("exit code %d: %s; the check is %+v", code, stderr, check)
	}
	maps.DeleteFunc(a.env, func(name, _ string) bool { return strings.HasSuffix(name, "TOKEN") })
	if code, _, stderr := a.run("settle", "--all"); code == 0 || !strings.Contains(stderr, "there is no token to read pull requests with") {
		t.Errorf("without a token: %d %s", code, stderr)
	}
}

// An apply that another run began, on a commit which this clone has not, is finished here.
func TestResumedOnAnothersCommit(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAttack(t, "")
	first := a.tx
	second, fingerprint := a.propose("diff --git a/second.txt b/second.txt\nnew file mode 100644\n--- /dev/null\n+++ b/second.txt\n@@ -0,0 +1 @@\n+second\n")
	a.says("ada", "/approve "+a.fingerprint)
	a.says("ada", "/approve "+fingerprint)
	a.clone()
	late := a.dir
	a.clone()
	hook := filepath.Join(strings.TrimSpace(a.s.Git(site, "rev-parse", "--absolute-git-dir")), "hooks", "update")
	was, err := os.ReadFile(hook)
	check(t, err)
	// From the second push to the branch on, the server takes nothing: the run is cut off.
	script := "#!/bin/sh\n[ ! -e off ] || exit 1\n[ \"$1\" = refs/heads/topic ] || exit 0\n[ ! -e once ] || { : > off; exit 1; }\n: > once\n"
	check(t, teststand.WriteFile(hook, []byte(script)))
	if code, _, stderr := a.run("settle", "--pr", "1", "--no-gate"); code == 0 {
		t.Fatalf("it was not cut off: %s", stderr)
	}
	check(t, teststand.WriteFile(hook, was))
	a.dir = late
	code, _, stderr := a.run("settle", "--pr", "1", "--no-gate")
	if one, two := a.status(first), a.status(second); code != 0 || one != "completed" || two != "completed" {
		t.Errorf("exit code %d, %s and %s: %s", code, one, two, stderr)
	}
}
