package packfile

import (
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkReadAll verifies the pack of 10,000 commits and reads every object
// of it in its order, beside `git fsck --full`.
func BenchmarkReadAll(b *testing.B) {
	r, _, names := packs(b, 1, 10000)
	dir := filepath.Join(r.objects(), "pack")
	ids, err := idsOf(dir, names)
	if err != nil {
		b.Fatal(err)
	}
	var ours, verify, theirs time.Duration
	for range b.N {
		start := time.Now()
		r.git("", "fsck", "--full")
		theirs += time.Since(start)
		start = time.Now()
		s := r.open()
		if err := s.Verify(nil); err != nil {
			b.Fatal(err)
		}
		verify += time.Since(start)
		errs := make([]error, len(ids))
		Parallel(len(ids), 1024, func(i int) { _, errs[i] = s.View(ids[i]) })
		if err := firstError(errs); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
	}
	b.ReportMetric(float64(verify.Milliseconds())/float64(b.N), "ms/verify")
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/ours")
	b.ReportMetric(float64(theirs.Milliseconds())/float64(b.N), "ms/git")
	b.ReportMetric(float64(ours)/float64(theirs), "x-git")
}
