//go:build unix

package workspace

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

const benchFiles = 10_000

// benchTrees are 10,000 files in 200 directories before and after a change
// that updates seven in ten, adds two and deletes one.
func benchTrees() (before, after files) {
	before, after = files{}, files{}
	for i := range benchFiles {
		name := fmt.Sprintf("dir%02d/sub%02d/file%04d.txt", i%20, i/20%10, i)
		old := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 60+i%80)
		if i%10 < 8 {
			before[name] = old
		}
		switch i % 10 {
		case 7: // goes
		case 8, 9:
			after[name] = old
		default:
			after[name] = "first\n" + old + "last\n"
		}
	}
	return before, after
}

// BenchmarkWorktreeApply compares what an apply does with a working tree of 10,000
// files, with attributes and without, with the real git apply of the same patch on the
// same file system. git apply neither syncs nor reads back. They take turns at being
// first, and each begins with nothing left to be written to the disk.
func BenchmarkWorktreeApply(b *testing.B) {
	for _, attributes := range []string{"", "* text=auto\n*.png binary\n"} {
		b.Run(strings.ReplaceAll(strings.TrimSpace(attributes), "\n", ","), func(b *testing.B) { benchApply(b, attributes) })
	}
}

func benchApply(b *testing.B, attributes string) {
	base := fstest.MapFS{".gitattributes": {Data: []byte(attributes)}}
	before, after := benchTrees()
	cs := changes(before, after)
	var diff bytes.Buffer
	for _, c := range cs {
		c.Kind = map[[2]bool]patch.Kind{{true, false}: patch.Add, {false, true}: patch.Delete}[[2]bool{c.Before == nil, c.After == nil}]
		diff.Write(c.Bytes())
	}
	patchFile := filepath.Join(b.TempDir(), "p.patch")
	fatal(b, os.WriteFile(patchFile, diff.Bytes(), 0o644))
	var git, ours time.Duration
	for n := 0; b.Loop(); n++ {
		for turn := range 2 {
			dir := b.TempDir()
			b.StopTimer()
			before.put(b, dir)
			syscall.Sync()
			b.StartTimer()
			began := b.Elapsed()
			if turn == n%2 {
				applyWithGit(b, dir, patchFile)
				git += b.Elapsed() - began
			} else {
				applyOurselves(b, dir, base, cs)
				ours += b.Elapsed() - began
			}
			b.StopTimer()
			same(b, dir, after)
			fatal(b, os.RemoveAll(dir))
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(ours)/float64(git), "x-git")
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/apply")
	b.ReportMetric(float64(git.Milliseconds())/float64(b.N), "ms/git")
}

func applyWithGit(b *testing.B, dir, patchFile string) {
	cmd := exec.Command("git", "apply", patchFile)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}

// applyOurselves looks whether the files are clean, then whether anything is to be done,
// writes, and reads them as validate does.
func applyOurselves(b *testing.B, dir string, base fs.FS, cs []patch.Change) {
	tree, err := Open(dir, b.TempDir(), false)
	fatal(b, err)
	defer tree.root.Close()
	var local []patch.Change
	for _, approved := range []bool{false, true, true} {
		if local, err = tree.Local(b.Context(), base, cs, approved); err != nil {
			b.Fatal(err)
		}
		if states, err := tree.Inspect(local); err != nil || states[0] != effect.Before {
			b.Fatal(err)
		}
	}
	if got := outcome(tree.Write(local)); got != "SUCCESS" {
		b.Fatal(got)
	}
	read, err := tree.Stored(b.Context(), base, cs)
	fatal(b, err)
	for _, c := range cs {
		if f, err := read(c.Path, c.Before); err != nil || !f.Equal(c.After) {
			b.Fatal(c.Path, err)
		}
	}
}
