package gitstore_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// entryOf is the i-th transaction of a day: four small files and a line in an
// index, 14 new objects with the trees and the commit.
func entryOf(i int) writing.Entry {
	when := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Millisecond)
	sum := canon.Hex(fmt.Appendf(nil, "transaction %d", i))
	id, err := writing.NewID(when, strings.NewReader(sum))
	if err != nil {
		panic(err)
	}
	dir := ledger.Dir(id) + "/"
	events := new(bytes.Buffer)
	for n := range 6 {
		fmt.Fprintf(events, `{"payload":{"n":%d,"transaction_id":"%s"},"prev":"sha256:%s","seq":%d,"timestamp":"2026-11-20T00:00:00.000Z","type":"tx/status"}`+"\n", n, id, canon.Hex(fmt.Append(nil, i, n)), n+1)
	}
	return writing.Entry{
		Message: "review: change to file.go\n\nCountersign-Transaction: " + id + "\n", When: when,
		Files: map[string][]byte{
			dir + ledger.TransactionFile:                 fmt.Appendf(nil, `{"status":"proposed","transaction_id":"%s","x":"%s"}`+"\n", id, sum),
			dir + ledger.EventsFile:                      events.Bytes(),
			dir + ledger.PatchFile(sum):                  fmt.Appendf(nil, "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-%d\n+%d\n", i, i+1),
			dir + ledger.ArtifactFile(sum):               fmt.Appendf(nil, `{"artifact":"%s"}`+"\n", sum),
			ledger.ProposedDir(sum) + "/" + id + ".json": fmt.Appendf(nil, `{"transaction_id":"%s"}`+"\n", id),
		},
	}
}

func entriesOf(from, to int) (out []writing.Entry) {
	for i := range to - from {
		out = append(out, entryOf(from+i))
	}
	return out
}

// bareLedger makes a repository with a ledger of n transactions.
func bareLedger(tb testing.TB, n int) (dir, tip string) {
	tb.Helper()
	dir = tb.TempDir()
	gitRun(tb, dir, nil, "init", "-q", "-b", "main")
	return bareLedgerAt(tb, dir, n)
}

func bareLedgerAt(tb testing.TB, dir string, n int) (_, tip string) {
	tb.Helper()
	l := ledgerAt(tb, dir)
	for from := 0; from < n; from += 1000 {
		var err error
		if tip, err = l.Append(tb.Context(), tip, entriesOf(from, min(n, from+1000))...); err != nil {
			tb.Fatal(err)
		}
	}
	return dir, tip
}

func ledgerAt(tb testing.TB, dir string, pages ...page.Version) *gitstore.Ledger {
	tb.Helper()
	repo, err := gitstore.Open(dir)
	fatal(tb, err)
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions(pages)})
	fatal(tb, err)
	return l
}

// BenchmarkAppend is one durable append in a process of its own, on ledgers of
// 10 and of 10,000 transactions of one day, in turn.
func BenchmarkAppend(b *testing.B) {
	self, err := os.Executable()
	fatal(b, err)
	const small, large = 10, 10_000
	dirs := map[int]string{}
	for _, n := range []int{small, large} {
		dirs[n], _ = bareLedger(b, n)
	}
	times := map[int][]time.Duration{}
	next := 20_000
	b.ResetTimer()
	for range max(b.N, 20) {
		for _, n := range []int{small, large} {
			next++
			cmd := exec.Command(self, fmt.Sprint(next))
			cmd.Env = append(os.Environ(), appendOne+"="+dirs[n])
			cmd.Stderr = os.Stderr
			start := time.Now()
			fatal(b, cmd.Run())
			times[n] = append(times[n], time.Since(start))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(times[small]), "ms-at-10")
	b.ReportMetric(median(times[large]), "ms-at-10000")
	b.ReportMetric(median(times[large])/median(times[small]), "x-flat")
}

func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}

// BenchmarkAppendBatch appends 10,000 transactions at once, and git fast-import
// does the same; then what they take on the disk beside `git gc`.
func BenchmarkAppendBatch(b *testing.B) {
	entries := entriesOf(0, 10_000)
	stream := fastImport(entries)
	var ours, theirs []time.Duration
	for b.Loop() {
		dir := b.TempDir()
		gitRun(b, dir, nil, "init", "-q", "-b", "main")
		l := ledgerAt(b, dir)
		start := time.Now()
		tip, err := l.Append(b.Context(), "", entries...)
		fatal(b, err)
		ours = append(ours, time.Since(start))
		other := b.TempDir()
		gitRun(b, other, nil, "init", "-q", "-b", "main")
		start = time.Now()
		gitRun(b, other, stream, "fast-import", "--quiet")
		theirs = append(theirs, time.Since(start))
		if got := strings.TrimSpace(string(gitRun(b, other, nil, "rev-parse", gitstore.LedgerRef))); got != tip {
			b.Fatalf("git made %s, we %s", got, tip)
		}
	}
	b.ReportMetric(median(ours), "ms-ours")
	b.ReportMetric(median(theirs), "ms-fast-import")
	b.ReportMetric(median(ours)/median(theirs), "x-fast-import")
}

// fastImport is the same commits for git fast-import.
func fastImport(entries []writing.Entry) []byte {
	var b bytes.Buffer
	for _, e := range entries {
		who := fmt.Sprintf("countersign <countersign@localhost> %d +0000", e.When.Unix())
		fmt.Fprintf(&b, "commit %s\nauthor %s\ncommitter %s\ndata %d\n%s", gitstore.LedgerRef, who, who, len(e.Message), e.Message)
		for name, data := range e.Files {
			fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", name, len(data), data)
		}
	}
	b.WriteString("done\n")
	return b.Bytes()
}

// BenchmarkDisk appends 10,000 transactions one by one, and compares what they
// take with what git gc makes of them.
func BenchmarkDisk(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		gitRun(b, dir, nil, "init", "-q", "-b", "main")
		l, tip := ledgerAt(b, dir), ""
		for i := range 10_000 {
			var err error
			if tip, err = l.Append(b.Context(), tip, entryOf(i)); err != nil {
				b.Fatal(err)
			}
		}
		before := diskUse(b, dir)
		gitRun(b, dir, nil, "gc", "--quiet")
		b.ReportMetric(before, "MB-ours")
		b.ReportMetric(diskUse(b, dir), "MB-after-gc")
		b.ReportMetric(before/diskUse(b, dir), "x-gc")
	}
}

// diskUse is the size of the packs and of the loose objects, in MB.
func diskUse(tb testing.TB, dir string) float64 {
	var total float64
	for line := range strings.Lines(string(gitRun(tb, dir, nil, "count-objects", "-v"))) {
		var key string
		var kb float64
		if _, err := fmt.Sscan(line, &key, &kb); err == nil && (key == "size:" || key == "size-pack:") {
			total += kb / 1024
		}
	}
	return total
}
