package gitpatch_test

import (
	"bytes"
	"fmt"

	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// scene is a change with the real git's view of it: a bare repository with the
// base commit, and git's own diff.
type scene struct {
	repo
	base memFS
	diff []byte
}

// newScene has n files of about fifty lines; of each, three lines change.
func newScene(b *testing.B, n int) scene {
	b.Helper()
	r := newRepo(b)
	files := map[string]*patch.File{}
	var in bytes.Buffer
	commit := func(data func(int) []byte) {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter t <t@localhost> 0 +0000\ndata 0\n")
		for i := range n {
			text := data(i)
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", benchName(i), len(text), text)
		}
	}
	commit(func(i int) []byte {
		text := lines(nil, fmt.Sprint(i, " "), 50)
		files[benchName(i)] = &patch.File{Mode: patch.Regular, Data: text}
		return text
	})
	commit(func(i int) []byte {
		text := bytes.SplitAfter(files[benchName(i)].Data, []byte("\n"))
		return bytes.Join(append(append([][]byte{[]byte("first\n")}, text[:20]...), append([][]byte{[]byte("edited\n")}, text[22:]...)...), nil)
	})
	r.gitIn(in.Bytes(), "fast-import", "--quiet")
	return scene{r, newMemFS(files), r.git("diff", "--binary", "main~", "main")}
}

func benchName(i int) string { return fmt.Sprintf("src/pkg%02d/sub%d/file%05d.go", i%50, i%7, i) }

// ours is the time of parse and resolve.
func (s scene) ours(b *testing.B) time.Duration {
	_, took := resolved(b, s.diff, s.base)
	return took
}

// theirs is the time of git apply --cached and git write-tree, from an index
// that has the base.
func (s scene) theirs(b *testing.B) time.Duration {
	s.git("read-tree", "main~")
	start := time.Now()
	s.gitIn(s.diff, "apply", "--cached", "--whitespace=nowarn", "-")
	s.git("write-tree")
	return time.Since(start)
}

// BenchmarkBesideGit alternates with the real git. git-ratio is our time as a
// part of git's; the aim is 0.5 at most.
func BenchmarkBesideGit(b *testing.B) {
	for _, n := range []int{3, 100, 10_000} {
		b.Run(fmt.Sprintf("%d files", n), func(b *testing.B) {
			s := newScene(b, n)
			var ours, theirs time.Duration
			for b.Loop() {
				ours += s.ours(b)
				theirs += s.theirs(b)
			}
			b.ReportMetric(float64(ours.Microseconds())/1000/float64(b.N), "ours-ms")
			b.ReportMetric(float64(theirs.Microseconds())/1000/float64(b.N), "git-ms")
			b.ReportMetric(ours.Seconds()/theirs.Seconds(), "git-ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
