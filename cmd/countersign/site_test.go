package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// BenchmarkSite writes the site of 10,000 transactions of every kind in a process of its own. The limits are 60 s of CPU,
// 250 MB of memory and 300 MB on disk.
func BenchmarkSite(b *testing.B) {
	dir, out := b.TempDir(), filepath.Join(b.TempDir(), "site")
	repo, err := gitstore.Init(dir)
	check(b, err)
	commitOne(b, dir)
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	check(b, err)
	entries, err := storetest.LivesOf(1, storetest.Mixed(9_000)...) // a denial is two of them
	check(b, err)
	_, err = l.Append(b.Context(), "", entries...)
	check(b, err)
	program := ourProgram(b)
	var full usage
	for b.Loop() {
		full = measured(b, program, "-C", dir, "site", "--out", out)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(onDisk(b, out), "MB-on-disk")
	full.report(b, "full")
}

// onDisk is what a directory takes in blocks of 4 KiB, in MB.
func onDisk(b *testing.B, dir string) float64 {
	b.Helper()
	blocks := int64(0)
	check(b, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			blocks += (info.Size() + 4095) / 4096
		}
		return err
	}))
	return float64(blocks) / 256
}

// usage is what a process took.
type usage struct {
	wall, cpu time.Duration
	peak      float64 // of resident memory, in MB; 0 where the system does not tell
}

func (u usage) report(b *testing.B, name string) {
	b.ReportMetric(u.wall.Seconds(), "s-"+name)
	b.ReportMetric(u.cpu.Seconds(), "cpu-s-"+name)
	b.ReportMetric(u.peak, "MB-"+name)
}

// measured runs a process, and looks at its peak as long as it runs.
func measured(b *testing.B, args ...string) (u usage) {
	b.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	began := time.Now()
	check(b, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			check(b, err)
			u.wall, u.cpu = time.Since(began), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
			return u
		case <-time.After(5 * time.Millisecond):
			status, _ := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/status")
			if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
				kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
				u.peak = max(u.peak, kb/1024)
			}
		}
	}
}
