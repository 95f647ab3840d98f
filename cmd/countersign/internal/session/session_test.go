package session

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Child() // a command's first process is this program again
	os.Exit(m.Run())
}

// TestT85GiteaNoSandbox: a job there has a token that may write, so that no command runs without the sandbox.
func TestT85GiteaNoSandbox(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"GITEA_ACTIONS", "FORGEJO_ACTIONS", "GITHUB_ACTIONS"} {
		a := console.New(console.Process{Getenv: func(asked string) string { return map[string]string{name: "true"}[asked] }, Stderr: io.Discard})
		ran, err := commands{a: a}.Run(t.Context(), a.Finder(), "danger-full-access", fstest.MapFS{}, []policy.Check{{Command: policy.Command{Argv: []string{"true"}}}})
		if refused := err != nil && strings.Contains(err.Error(), "commands without a sandbox"); refused != (name != "GITHUB_ACTIONS") {
			t.Errorf("%s: %+v %v", name, ran, err)
		}
	}
}

// TestT18InWorkflow: a job of whichever forge's runner trusts no event that it cannot read, and counts as one that
// may hold a token.
func TestT18InWorkflow(t *testing.T) {
	for _, name := range []string{"GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS", ""} {
		env := map[string]string{name: "true", "GITHUB_TOKEN": "x"}
		a := console.New(console.Process{Getenv: func(key string) string { return env[key] }})
		job := name != ""
		if in := console.InWorkflow(a.Getenv); in != job {
			t.Errorf("%s: in a workflow: %v", name, in)
		}
		if distrusted := trustedForge(a, nil) != nil; distrusted != job {
			t.Errorf("%s: approvals are read although the event cannot be: %v", name, !distrusted)
		}
		if _, err := workflowPolicyRef(a.Getenv); (err != nil) != job {
			t.Errorf("%s: the Policy's ref: %v", name, err)
		}
	}
}
