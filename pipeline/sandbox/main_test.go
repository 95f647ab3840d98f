package sandbox_test

import (
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// attack runs what the arguments name instead of the tests; nil where there is no attack.
var attack func(args []string) (ran bool)

// executable is this test's, to be started again as our child or as an attack.
var executable = "/proc/self/exe"

func TestMain(m *testing.M) {
	sandbox.Child()
	if os.Getenv("ONLY_START") != "" {
		os.Stdout.WriteString("started")
		return
	}
	if attack != nil && attack(os.Args[1:]) {
		return
	}
	os.Exit(tests(m))
}

// tests runs the tests. The race detector takes more memory than a command may
// have, so the child and the attacks are built without it.
func tests(m *testing.M) int {
	if raced {
		dir, err := os.MkdirTemp("", "sandbox-test-")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		executable = filepath.Join(dir, "test")
		if out, err := exec.Command("go", "test", "-c", "-o", executable, ".").CombinedOutput(); err != nil {
			log.Fatalf("building the test without the race detector: %v\n%s", err, out)
		}
	}
	writer.Self = executable
	return m.Run()
}

var writer = sandbox.Sandbox{Mode: sandbox.WorkspaceWrite}
