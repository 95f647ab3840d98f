package packapply_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/packapply"
)

const benchFiles = 10_000

// BenchmarkPackApply creates 10,000 small files in 100 directories. The metric
// x-plain is how much longer that takes than a plain loop of os.WriteFile that
// makes the same files, checks nothing and reports nothing.
func BenchmarkPackApply(b *testing.B) {
	dir := b.TempDir()
	var lines []string
	for i := range benchFiles {
		lines = append(lines, fmt.Sprintf("create d%02d/f%04d %064d", i%100, i, i))
	}
	files{"p/patch.json": patchOf(b, lines...)}.make(b, dir)
	var plain, ours time.Duration
	target, beside := filepath.Join(dir, "t"), filepath.Join(dir, "plain")
	for b.Loop() {
		must(b, os.Mkdir(target, 0o777))
		began := b.Elapsed()
		writePlainly(b, beside)
		between := b.Elapsed()
		r, err := packapply.Apply(filepath.Join(dir, "p"), target, false)
		if err != nil || r.Summary.Succeeded != benchFiles {
			b.Fatalf("%v, %v", r.Summary, err)
		}
		plain += between - began
		ours += b.Elapsed() - between
		b.StopTimer()
		must(b, errors.Join(os.RemoveAll(target), os.RemoveAll(beside)))
		b.StartTimer()
	}
	b.ReportMetric(float64(ours)/float64(plain), "x-plain")
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/apply")
}

func writePlainly(b *testing.B, dir string) {
	for i := range 100 {
		must(b, os.MkdirAll(filepath.Join(dir, fmt.Sprintf("d%02d", i)), 0o777))
	}
	for i := range benchFiles {
		must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("d%02d", i%100), fmt.Sprintf("f%04d", i)), fmt.Appendf(nil, "%064d", i), 0o666))
	}
}
