package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/report"
)

// T46, T66: what one pull request holds as a secret is none of another's in the
// same sweep, so that nobody can keep others' changes from being applied; and
// nothing of either is printed.
func TestT46SweepKeepsSecretsApart(t *testing.T) {
	long(t)
	t.Parallel()
	for name, rules := range map[string]string{"default rules": "", "rules of its own": "[extend]\nuseDefault = true\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			if rules != "" {
				h.pushes("ada", "main", ".gitleaks.toml", rules)
				h.clone()
			}
			const value = "Zx81mQp0" + "LkTy47VbNc63"
			h.pushes("bob", "more", "config.env", `db_password = "`+value+"\"\n")
			other := h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "more", Base: "main", Title: "More"}).Number
			a := &attack{hub: h}
			a.pr = other
			a.happens(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: other})
			a.guards(report.CheckActionRequired)
			a.pr = 1
			a.event("workflow_dispatch", nil)
			a.proposes("see " + value)
			a.says("ada", "/approve "+a.fingerprint)
			code, stdout, stderr := a.run("settle", "--all")
			if got := a.status(a.tx); code != console.ExitPending || got != "completed" {
				t.Errorf("exit code %d, the proposal is %s: %s", code, got, stderr)
			}
			for _, text := range []string{stdout, stderr, a.comment(), fmt.Sprint(a.s.CheckRuns(site, ""))} {
				if strings.Contains(text, value) {
					t.Errorf("the secret is told: %s", text)
				}
			}
		})
	}
}

// T46: nor is it one of another proposal's for the same pull request that the same
// run settles.
func TestT46SettleKeepsSecretsApart(t *testing.T) {
	long(t)
	t.Parallel()
	const value = "Zx81mQp0" + "LkTy47VbNc63"
	a := newAttack(t, "")
	a.proposes("see " + value)
	a.says("ada", "/approve "+a.fingerprint)
	a.git(a.dir, "checkout", "-q", "--detach", "origin/topic")
	bundle := a.bundle("diff --git a/config.env b/config.env\nnew file mode 100644\n--- /dev/null\n+++ b/config.env\n@@ -0,0 +1 @@\n+db_password = \"" + value + "\"\n")
	a.git(a.dir, "checkout", "-q", "main")
	code, stdout, stderr := a.run("settle", "--pr", "1", "--no-gate", "--bundle", bundle)
	if got := a.status(a.tx); code != console.ExitPending || got != "completed" {
		t.Errorf("exit code %d, the approved proposal is %s: %s", code, got, stderr)
	}
	for _, text := range []string{stdout, stderr, a.comment(), fmt.Sprint(a.s.CheckRuns(site, ""))} {
		if strings.Contains(text, value) {
			t.Errorf("the secret is told: %s", text)
		}
	}
}
