package statements_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/statements"
)

const benchFiles = 10_000

// BenchmarkPackApply creates 10,000 small files in 100 directories. The metric
// x-plain is how much longer that takes than a plain loop of os.WriteFile that
// makes the same files, checks nothing and reports nothing. They take turns at
// being first: the second waits for what the first left to the disk.
func BenchmarkPackApply(b *testing.B) {
	dir := b.TempDir()
	var lines []string
	for i := range benchFiles {
		lines = append(lines, fmt.Sprintf("create d%02d/f%04d %064d", i%100, i, i))
	}
	files{"p/patch.json": patchOf(b, lines...)}.make(b, dir)
	target, beside := filepath.Join(dir, "t"), filepath.Join(dir, "plain")
	var plain, ours time.Duration
	for n := 0; b.Loop(); n++ {
		must(b, os.Mkdir(target, 0o777))
		if n%2 == 0 {
			plain += timed(b, func() { writePlainly(b, beside) })
		}
		ours += timed(b, func() {
			r, err := statements.Apply(filepath.Join(dir, "p"), target, false)
			if err != nil || r.Summary.Succeeded != benchFiles {
				b.Fatalf("%v, %v", r.Summary, err)
			}
		})
		if n%2 == 1 {
			plain += timed(b, func() { writePlainly(b, beside) })
		}
		b.StopTimer()
		must(b, errors.Join(os.RemoveAll(target), os.RemoveAll(beside)))
		b.StartTimer()
	}
	b.ReportMetric(float64(ours)/float64(plain), "x-plain")
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/apply")
}

func timed(b *testing.B, do func()) time.Duration {
	began := b.Elapsed()
	do()
	return b.Elapsed() - began
}

func writePlainly(b *testing.B, dir string) {
	for i := range 100 {
		must(b, os.MkdirAll(filepath.Join(dir, fmt.Sprintf("d%02d", i)), 0o777))
	}
	for i := range benchFiles {
		must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("d%02d", i%100), fmt.Sprintf("f%04d", i)), fmt.Appendf(nil, "%064d", i), 0o666))
	}
}
