package gitstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/bundle"
	"github.com/countersign-dev/countersign/gitstore/object"
)

// TestWriteAuditedBundle: a bundle of a ledger that was read has the objects that one has of which nothing is known, whatever
// the graph of commits beside them says; of a ledger that lacks one it is an error.
func TestWriteAuditedBundle(t *testing.T) {
	dir, tip := bareLedger(t, 9)
	objects := func(write func(context.Context, string, io.Writer) error) []object.ID {
		t.Helper()
		var out bytes.Buffer
		fatal(t, write(t.Context(), tip, &out))
		b, err := bundle.Read(&out, int64(out.Len()), bundle.Limits{Held: 1 << 20, Made: 1 << 24})
		fatal(t, err)
		if ref, err := b.Ref(gitstore.LedgerRef); err != nil || ref.ID.String() != tip {
			t.Error(ref, err)
		}
		ids := b.Objects().IDs()
		slices.SortFunc(ids, func(a, b object.ID) int { return strings.Compare(a.String(), b.String()) })
		return ids
	}
	l := ledgerAt(t, dir)
	one, other := objects(l.WriteAuditedBundle), objects(l.WriteBundle)
	if !slices.Equal(one, other) || len(one) < 90 {
		t.Errorf("%d objects, want %d", len(one), len(other))
	}
	gitRun(t, dir, nil, "commit-graph", "write", "--reachable")
	orphan(t, filepath.Join(dir, ".git", "objects", "info", "commit-graph"))
	if n := len(strings.Fields(string(gitRun(t, dir, nil, "rev-list", tip)))); n != 1 {
		t.Fatalf("the graph is not believed: %d commits", n)
	}
	if got := objects(l.WriteAuditedBundle); !slices.Equal(got, other) {
		t.Errorf("%d objects beside a graph that lies, want %d", len(got), len(other))
	}
	packs, err := filepath.Glob(filepath.Join(dir, ".git", "objects", "pack", "*.pack"))
	fatal(t, err)
	for _, pack := range packs {
		raw, err := os.ReadFile(pack)
		fatal(t, err)
		fatal(t, os.Remove(pack))
		gitRun(t, dir, raw, "unpack-objects", "-q")
	}
	lacks := strings.TrimSpace(string(gitRun(t, dir, nil, "rev-parse", tip+":transactions")))
	fatal(t, os.Remove(filepath.Join(dir, ".git", "objects", lacks[:2], lacks[2:])))
	if err := l.WriteAuditedBundle(t.Context(), tip, io.Discard); err == nil {
		t.Error("nobody misses a directory")
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

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
