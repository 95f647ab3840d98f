package main

import (
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
)

// TestT85GiteaRights: what init writes for Gitea and Forgejo uses nobody's actions, gives a secret to one step of a job at a
// time and to none that a pull request's file can change, and puts nothing of an event into a script.
func TestT85GiteaRights(t *testing.T) {
	t.Parallel()
	setup := scaffold.Setup{Settings: scaffold.Settings{Guarded: "main", LedgerRef: "refs/heads/ledger"}, Given: func(string) bool { return false }}
	files, _, err := setup.Plan(t.Context(), fstest.MapFS{})
	check(t, err)
	may := map[string][]string{ // the jobs, and the secrets that each has
		"settle": {"COUNTERSIGN_LEDGER_TOKEN", "COUNTERSIGN_SIGN_KEY", "COUNTERSIGN_TOKEN"}, "checks": nil, "relay": nil, "propose": nil,
		"finish": {"COUNTERSIGN_LEDGER_TOKEN", "COUNTERSIGN_SIGN_KEY", "COUNTERSIGN_TOKEN"},
	}
	seen := 0
	for _, file := range files[1:] {
		w, name := parseWorkflow(t, file.Want), path.Base(file.Path)
		if strings.Contains(w.raw, "[[") || strings.Contains(w.raw, "uses:") || w.On["pull_request_target"] != nil {
			t.Errorf("%s leaves something open, or uses what it must not:\n%s", name, w.raw)
		}
		if pulls := w.On["pull_request"] != nil; pulls == (name == "countersign.yml") || pulls && strings.Contains(w.raw, "secrets") {
			t.Errorf("%s runs on a pull request: %v", name, pulls)
		}
		for id, job := range w.Jobs {
			seen++
			secrets, known := may[id]
			if !known || job.Timeout == 0 {
				t.Errorf("%s: the job %s is not in the table, or has no end", name, id)
			}
			for _, step := range job.Steps {
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: %s: an expression in a script: %s", name, id, step.Run)
				}
				for variable, value := range step.Env {
					text, _ := value.(string)
					for _, one := range strings.Split(text, "${{")[1:] {
						secret, isSecret := strings.CutPrefix(strings.TrimSpace(one), "secrets.")
						secret, _, _ = strings.Cut(secret, " ")
						if isSecret && !strings.Contains(" "+strings.Join(secrets, " ")+" ", " "+secret+" ") {
							t.Errorf("%s: the job %s has %s in %s", name, id, secret, variable)
						}
					}
				}
			}
		}
		if n := strings.Count(w.raw, "secrets."); name == "countersign.yml" && n == 0 {
			t.Error("no secret was found in", name)
		}
	}
	if seen != len(may) {
		t.Errorf("%d jobs, and %d in the table", seen, len(may))
	}
}
