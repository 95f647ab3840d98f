package storetest

import (
	"flag"
	"os"
	"strconv"
	"strings"
)

// FilesInMemory makes a temporary directory in memory that the tests of this
// process use, and returns what removes it when they have run. Tests that make
// thousands of repositories otherwise spend half of their time on waiting for the
// disk. Nothing that they prove depends on the disk: what a killed process has
// written stays in either.
//
// Files stay where they are if TMPDIR names a place, if benchmarks are wanted,
// and if memory is short or programs in it cannot be run.
func FilesInMemory() (remove func()) {
	const memory = "/dev/shm"
	flag.Parse()
	mounts, _ := os.ReadFile("/proc/self/mounts")
	available, _ := os.ReadFile("/proc/meminfo")
	if bench := flag.Lookup("test.bench"); os.Getenv("TMPDIR") != "" || bench == nil || bench.Value.String() != "" ||
		!roomy(string(mounts), memory) || kilobytes(string(available), "MemAvailable:") < 4<<20 {
		return func() {}
	}
	dir, err := os.MkdirTemp(memory, "countersign-tests-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // for tests that are somebody else
	}
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		return func() {}
	}
	return func() { _ = os.RemoveAll(dir) }
}

// roomy reports whether a file system in memory of 2 GiB or more is mounted at a
// directory, and lets programs run.
func roomy(mounts, dir string) bool {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 3 && f[1] == dir && f[2] == "tmpfs" {
			options := "," + f[3] + ","
			_, size, sized := strings.Cut(options, ",size=")
			size, _, _ = strings.Cut(size, "k,")
			n, err := strconv.Atoi(size)
			return !strings.Contains(options, ",noexec,") && strings.Contains(options, "rw,") && (!sized || err == nil && n >= 2<<20)
		}
	}
	return false
}

// kilobytes is one line of /proc/meminfo.
func kilobytes(meminfo, name string) int {
	_, rest, _ := strings.Cut(meminfo, name)
	value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.Atoi(value)
	return n
}
