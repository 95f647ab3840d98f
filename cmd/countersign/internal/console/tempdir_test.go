//go:build unix

package console_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const asChild = "COUNTERSIGN_TEST_TEMPDIR"

// TestTempDir: the directory is gone once it is removed, and also when the program was
// ended, which ends then as without it.
func TestTempDir(t *testing.T) {
	if os.Getenv(asChild) != "" {
		dir, _, err := console.TempDir("test-")
		fmt.Println(dir, err, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		select {}
	}
	dir, remove, err := console.TempDir("test-")
	teststand.Fatal(t, err)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	remove()
	remove()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) { // as under nohup
			t.Logf("NOT RUN: %v is ignored here", s)
			continue
		}
		child := exec.Command(os.Args[0], "-test.run=^TestTempDir$")
		child.Env = append(os.Environ(), asChild+"=1")
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		teststand.Fatal(t, err)
		line, err := bufio.NewReader(out).ReadString('\n')
		dir, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err != nil || rest != "<nil> <nil>" {
			t.Fatalf("%q %v", line, err)
		}
		teststand.Fatal(t, child.Process.Signal(s))
		var ended *exec.ExitError
		if err := child.Wait(); !errors.As(err, &ended) || !ended.Sys().(syscall.WaitStatus).Signaled() || ended.Sys().(syscall.WaitStatus).Signal() != s {
			t.Errorf("%v: %v", s, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: %s is left behind", s, dir)
		}
	}
}
