package main

import "testing"

// TestT18InWorkflow: a job of whichever forge's runner trusts no event that it cannot read, and counts as one that
// may hold a token.
func TestT18InWorkflow(t *testing.T) {
	for _, name := range []string{"GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS", ""} {
		env := map[string]string{name: "true", "GITHUB_TOKEN": "x"}
		a := &App{Getenv: func(key string) string { return env[key] }}
		job := name != ""
		if in := inWorkflow(a.Getenv); in != job {
			t.Errorf("%s: in a workflow: %v", name, in)
		}
		if distrusted := a.trustedForge(nil) != nil; distrusted != job {
			t.Errorf("%s: approvals are read although the event cannot be: %v", name, !distrusted)
		}
		if _, err := workflowPolicyRef(a.Getenv); (err != nil) != job {
			t.Errorf("%s: the Policy's ref: %v", name, err)
		}
	}
}
