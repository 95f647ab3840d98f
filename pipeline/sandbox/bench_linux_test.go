package sandbox_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// BenchmarkTrue is what a command costs in a sandbox, and without one.
func BenchmarkTrue(b *testing.B) {
	dir := b.TempDir()
	b.Run("plain", func(b *testing.B) {
		median(b, func() error { return exec.Command("/bin/true").Run() })
	})
	b.Run("sandboxed", func(b *testing.B) {
		median(b, func() error {
			r, err := writer.Run(context.Background(), dir, sandbox.Command{Argv: []string{"/bin/true"}})
			if err == nil && r.ExitCode != 0 {
				err = fmt.Errorf("exit code %d", r.ExitCode)
			}
			return err
		})
	})
}

func median(b *testing.B, run func() error) {
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		must(b, run())
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "ms-median")
}
