package gitpatch_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// resolved parses and resolves, and returns how long that took.
func resolved(t testing.TB, raw []byte, base memFS) (patch.Patchset, time.Duration) {
	t.Helper()
	start := time.Now()
	d, err := gitpatch.Parse(raw)
	fatal(t, err)
	p, err := d.Resolve(base)
	fatal(t, err)
	return p, time.Since(start)
}

func TestHundredThousandFiles(t *testing.T) {
	n := 10_000
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		n = 100_000
	}
	files := map[string]*patch.File{}
	var raw bytes.Buffer
	for i := range n {
		name := fmt.Sprintf("dir%d/sub%d/file%d.txt", i%100, i%1000, i)
		files[name] = &patch.File{Mode: patch.Regular, Data: []byte("old\n")}
		fmt.Fprintf(&raw, "diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-old\n+new\n", name)
	}
	p, took := resolved(t, raw.Bytes(), newMemFS(files))
	if len(p.Changes) != n {
		t.Errorf("%d changes", len(p.Changes))
	}
	t.Logf("%d files, %d MB: %v", n, raw.Len()>>20, took)
}

// big is a size in MiB: small here, large with COUNTERSIGN_LONG=1.
func big(small, large int) int {
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		return large << 20
	}
	return small << 20
}

func TestLongLine(t *testing.T) {
	long := strings.Repeat("x", big(4, 100))
	base := newMemFS(map[string]*patch.File{"a": {Mode: patch.Regular, Data: []byte(long + "\nend\n")}})
	raw := "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-" + long + "\n+" + long + "y\n end\n"
	p, took := resolved(t, []byte(raw), base)
	if got := len(p.Changes[0].After.Data); got != len(long)+6 {
		t.Errorf("%d bytes", got)
	}
	if got := len(p.Bytes()); got < len(raw) {
		t.Errorf("%d canonical bytes", got)
	}
	t.Logf("%v", took)
}

// T42 Many copies of one file cost what they expand to before they are made.
func TestT42CopyBomb(t *testing.T) {
	base := newMemFS(map[string]*patch.File{"a": {Mode: patch.Regular, Data: bytes.Repeat([]byte("line\n"), 1<<20)}})
	var raw bytes.Buffer
	for i := range 100 {
		fmt.Fprintf(&raw, "diff --git a/a b/c%[1]d\nsimilarity index 99%%\ncopy from a\ncopy to c%[1]d\n--- a/a\n+++ b/c%[1]d\n@@ -1 +1 @@\n-line\n+LINE\n", i)
	}
	d, err := gitpatch.Parse(raw.Bytes())
	fatal(t, err)
	if _, err = d.Resolve(base); err == nil || !strings.Contains(err.Error(), "expands to more than 256 MiB") {
		t.Error(err)
	}
}

// ordinary are patches of about size bytes of ordinary lines.
var ordinary = []struct {
	name string
	make func(size int) ([]byte, memFS)
}{
	{"one new file", func(size int) ([]byte, memFS) {
		n := size / 60
		raw := fmt.Appendf(nil, "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1,%d @@\n", n)
		return lines(raw, "+", n), newMemFS(nil)
	}},
	{"one file rewritten", func(size int) ([]byte, memFS) {
		n := size / 120
		raw := fmt.Appendf(nil, "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,%d +1,%d @@\n", n, n)
		raw = lines(lines(raw, "-", n), "+new ", n)
		return raw, newMemFS(map[string]*patch.File{"a": {Mode: patch.Regular, Data: lines(nil, "", n)}})
	}},
	{"a thousand files edited", func(size int) ([]byte, memFS) {
		files := map[string]*patch.File{}
		n := size / 1000 / 410 // hunks of eight lines a file
		var raw []byte
		for i := range 1000 {
			name := "dir/file" + strconv.Itoa(i)
			data := lines(nil, "", apart*n)
			files[name] = &patch.File{Mode: patch.Regular, Data: data}
			raw = edits(raw, name, bytes.SplitAfter(data, []byte("\n")), n)
		}
		return raw, newMemFS(files)
	}},
}

// lines appends n lines of about 60 bytes.
func lines(b []byte, mark string, n int) []byte {
	for i := range n {
		b = fmt.Appendf(b, "%sthis is line %09d, as long as most lines of code are\n", mark, i)
	}
	return b
}

// apart is the number of lines from one edit to the next.
const apart = 16

// edits appends a section that changes one line in sixteen.
func edits(raw []byte, name string, text [][]byte, n int) []byte {
	raw = fmt.Appendf(raw, "diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n", name)
	for h := range n {
		raw = fmt.Appendf(raw, "@@ -%[1]d,7 +%[1]d,7 @@\n", apart*h+1)
		for i, line := range text[apart*h : apart*h+7] {
			if i == 3 {
				raw = append(append(raw, '-'), line...)
				raw = append(raw, "+edited\n"...)
				continue
			}
			raw = append(append(raw, ' '), line...)
		}
	}
	return raw
}

// TestPeakMemory needs COUNTERSIGN_LONG=1 and Linux: a 100 MB patch with its
// canonical bytes takes at most 6 times its size, beside the base files that it
// touches: these are there twice, in the test's own file system and as the
// Patchset's before bytes.
func TestPeakMemory(t *testing.T) {
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		t.Skip("COUNTERSIGN_LONG is not set")
	}
	for _, o := range ordinary {
		t.Run(o.name, func(t *testing.T) {
			raw, base := o.make(100 << 20)
			raw = bytes.Clone(raw)
			held := 0
			for _, f := range base.files {
				held += len(f.Data)
			}
			debug.FreeOSMemory()
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
				t.Skip(err)
			}
			p, took := resolved(t, raw, base)
			afterResolve := peak(t)
			size := len(p.Bytes())
			end := peak(t)
			t.Logf("patch %d MB, base %d MB, canonical %d MB; peak %d MB after Resolve, %d MB after Bytes (%.1f times); %v to resolve",
				len(raw)>>20, held>>20, size>>20, afterResolve>>20, end>>20, float64(end)/float64(len(raw)), took)
			if end > 6*len(raw)+2*held {
				t.Errorf("more than six times the size, beside the base")
			}
		})
	}
}

// peak is the most memory that this process has had since clear_refs.
func peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	fatal(t, err)
	return kb << 10
}
