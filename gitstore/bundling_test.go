package gitstore_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestWriteBundle: a bundle has all objects of a ledger, whatever the graph of commits beside them says; of a ledger that lacks
// one it is an error, or has all that are left.
func TestWriteBundle(t *testing.T) {
	dir, tip := bareLedger(t, 9)
	l := ledgerAt(t, dir)
	objects := func(lenient bool) []string {
		t.Helper()
		var out bytes.Buffer
		fatal(t, l.WriteBundle(t.Context(), tip, lenient, &out))
		b, err := packfile.ReadBundle(&out, int64(out.Len()), packfile.Limits{Held: 1 << 20, Made: 1 << 24})
		fatal(t, err)
		if ref, err := b.Ref(gitstore.LedgerRef); err != nil || ref.ID.String() != tip {
			t.Error(ref, err)
		}
		var ids []string
		for _, id := range b.Objects().IDs() {
			ids = append(ids, id.String())
		}
		slices.Sort(ids)
		return ids
	}
	want := strings.Fields(string(gitRun(t, dir, nil, "rev-list", "--objects", "--no-object-names", tip)))
	slices.Sort(want)
	for _, lenient := range []bool{false, true} {
		if got := objects(lenient); !slices.Equal(got, want) || len(got) < 90 {
			t.Errorf("%d objects, want %d", len(got), len(want))
		}
	}
	gitRun(t, dir, nil, "commit-graph", "write", "--reachable")
	orphan(t, filepath.Join(dir, ".git", "objects", "info", "commit-graph"))
	if n := len(strings.Fields(string(gitRun(t, dir, nil, "rev-list", tip)))); n != 1 {
		t.Fatalf("the graph is not believed: %d commits", n)
	}
	if got := objects(false); !slices.Equal(got, want) {
		t.Errorf("%d objects beside a graph that lies, want %d", len(got), len(want))
	}
	packs, err := filepath.Glob(filepath.Join(dir, ".git", "objects", "pack", "*.pack"))
	fatal(t, err)
	for _, pack := range packs {
		raw, err := os.ReadFile(pack)
		fatal(t, err)
		fatal(t, os.Remove(pack))
		gitRun(t, dir, raw, "unpack-objects", "-q")
	}
	file := strings.Fields(string(gitRun(t, dir, nil, "ls-tree", "-r", "--name-only", tip)))[0]
	lacks := strings.TrimSpace(string(gitRun(t, dir, nil, "rev-parse", tip+":"+file)))
	fatal(t, os.Remove(filepath.Join(dir, ".git", "objects", lacks[:2], lacks[2:])))
	if err := l.WriteBundle(t.Context(), tip, false, io.Discard); err == nil {
		t.Error("nobody misses a file")
	}
	if left := objects(true); len(left) != len(want)-1 || slices.Contains(left, lacks) {
		t.Errorf("%d objects of %d are left without %s", len(left), len(want), lacks)
	}
}

// orphan has a graph of commits say that none has a parent.
func orphan(t *testing.T, name string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	fatal(t, err)
	const chunk, commit, none = 12, 20 + 16, 0x70000000
	var start, end uint64
	for at := raw[8:]; end == 0; at = at[chunk:] {
		if string(at[:4]) == "CDAT" {
			start, end = binary.BigEndian.Uint64(at[4:]), binary.BigEndian.Uint64(at[4+chunk:])
		}
	}
	for at := start; at < end; at += commit {
		binary.BigEndian.PutUint32(raw[at+20:], none)
	}
	fatal(t, os.Chmod(name, 0o600))
	fatal(t, os.WriteFile(name, raw, 0o600))
}

// fatal ends a test that has an error.
var fatal = teststand.Fatal
