// Package storetest is for tests: the suite that every writing.Store must
// pass, and a Store in memory that passes it.
package storetest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Memory is a ledger in memory. One Append in ten finds that the ledger has
// moved, whether it has or not, so that whoever writes has to try again. The
// zero Memory is an empty ledger; it may be used by several goroutines.
type Memory struct {
	mu      sync.Mutex
	appends int
	tip     string
	files   map[string][]byte
	entries []writing.Entry
	at      map[string]map[string][]byte // the files at each tip
}

var _ writing.Store = (*Memory)(nil)

// Snapshot returns the ledger as it stands.
func (m *Memory) Snapshot(context.Context, ...string) (writing.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot(m.tip)
}

// At returns the ledger as it was at a tip.
func (m *Memory) At(_ context.Context, tip string) (writing.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot(tip)
}

func (m *Memory) snapshot(tip string) (writing.Snapshot, error) {
	files, known := m.at[tip]
	if !known && tip != "" {
		return writing.Snapshot{}, fmt.Errorf("there was no tip %q", tip)
	}
	tree := fstest.MapFS{}
	for name, data := range files {
		tree[name] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	return writing.Snapshot{Tip: tip, Tree: tree}, nil
}

// Append adds an entry on tip. The new tip is a hash of all there is.
func (m *Memory) Append(_ context.Context, tip string, entries ...writing.Entry) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.appends++
	if tip != m.tip || m.appends%10 == 3 {
		return "", writing.ErrMoved
	}
	for _, e := range entries {
		before, err := m.snapshot(m.tip)
		if err != nil {
			return "", err
		}
		pages := page.Versions(nil).Of(before.Tree, e)
		m.add(e, pages)
	}
	return m.tip, nil
}

func (m *Memory) add(e writing.Entry, pages map[string][]byte) {
	files := maps.Clone(m.files)
	if files == nil {
		files = map[string][]byte{}
	}
	sum := m.tip + "\n" + e.Message + "\n" + ledger.FormatTime(e.When) + "\n"
	for _, written := range []map[string][]byte{e.Files, pages} {
		for _, name := range slices.Sorted(maps.Keys(written)) {
			files[name] = bytes.Clone(written[name])
			sum += fmt.Sprintf("%s %s\n", canon.Hex(written[name]), name)
		}
	}
	m.tip, m.files = canon.Hex([]byte(sum)), files
	m.entries = append(m.entries, e)
	if m.at == nil {
		m.at = map[string]map[string][]byte{}
	}
	m.at[m.tip] = m.files
}

// Entries returns what was appended, oldest first.
func (m *Memory) Entries() []writing.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.entries)
}

// Plain is a writing.Scrubber that finds no secrets.
type Plain struct{}

var _ writing.Scrubber = Plain{}

// Text returns s.
func (Plain) Text(s string) string { return s }

// Diff returns diff.
func (Plain) Diff(diff []byte) []byte { return diff }

// JSON returns the document in canonical form.
func (Plain) JSON(doc []byte, _ func(key, value string) bool) ([]byte, error) {
	v, err := canon.Parse(doc)
	if err != nil {
		return nil, err
	}
	return canon.Marshal(v)
}

// FilesInMemory makes a temporary directory in memory that the tests of this
// process use, and returns what removes it when they have run. Tests that make
// thousands of repositories otherwise spend half of their time on waiting for the
// disk. Nothing that they prove depends on the disk: what a killed process has
// written stays in either.
//
// getenv and setenv are those of the process.
//
// Files stay where they are if TMPDIR names a place, if benchmarks are wanted,
// and if memory is short or programs in it cannot be run.
func FilesInMemory(getenv func(string) string, setenv func(name, value string) error) (remove func()) {
	const memory = "/dev/shm"
	flag.Parse()
	mounts, _ := os.ReadFile("/proc/self/mounts")
	available, _ := os.ReadFile("/proc/meminfo")
	if bench := flag.Lookup("test.bench"); getenv("TMPDIR") != "" || bench == nil || bench.Value.String() != "" ||
		!roomy(string(mounts), memory) || kilobytes(string(available), "MemAvailable:") < 4<<20 {
		return func() {}
	}
	dir, err := os.MkdirTemp(memory, "countersign-tests-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // for tests that are somebody else
	}
	if err == nil {
		err = setenv("TMPDIR", dir)
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
