package gitstore_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/bundle"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// TestGrowBundle: a bundle that grows with its ledger has what one has that is written whole, for Git and for us, and one
// that was changed meanwhile is refused.
func TestGrowBundle(t *testing.T) {
	entries, err := storetest.Lives(storetest.Mixed(9)...)
	fatal(t, err)
	dir, tip := bareLedger(t, 0)
	l := ledgerAt(t, dir)
	from, has, grown := "", gitstore.BundleObjects(nil), new(bytes.Buffer)
	for i, e := range entries {
		tip, err = l.Append(t.Context(), tip, e)
		fatal(t, err)
		if i%3 == 1 {
			continue
		}
		next := new(bytes.Buffer)
		if from == "" {
			has, err = l.WriteListedBundle(t.Context(), tip, true, next)
		} else {
			has, err = l.GrowBundle(t.Context(), tip, from, has, section(grown.Bytes()), next)
		}
		fatal(t, err)
		from, grown = tip, next
	}
	var whole bytes.Buffer
	want, err := l.WriteListedBundle(t.Context(), tip, false, &whole)
	fatal(t, err)
	if !bytes.Equal(has, want) || len(want) < 20*100 {
		t.Errorf("%d objects, want %d", len(has)/20, len(want)/20)
	}
	if _, err := bundle.Read(bytes.NewReader(grown.Bytes()), int64(len(grown.Bytes())), bundle.Limits{Held: 1 << 30, Made: 1 << 32}); err != nil {
		t.Error(err)
	}
	other, file := t.TempDir(), filepath.Join(t.TempDir(), "x.bundle")
	gitRun(t, other, nil, "init", "-q", "--bare")
	fatal(t, os.WriteFile(file, grown.Bytes(), 0o666))
	gitRun(t, other, nil, "fetch", "-q", file, "refs/agent/*:refs/agent/*")
	gitRun(t, other, nil, "fsck", "--strict", "--full")
	if got := strings.TrimSpace(string(gitRun(t, other, nil, "rev-parse", gitstore.LedgerRef))); got != tip {
		t.Errorf("Git has %s, want %s", got, tip)
	}

	for name, bad := range map[string][]byte{
		"empty": nil, "cut": grown.Bytes()[:grown.Len()-1], "longer": append(bytes.Clone(grown.Bytes()), 0), "a bit": flipped(grown.Bytes(), grown.Len()/2),
		"the count": flipped(grown.Bytes(), bytes.Index(grown.Bytes(), []byte("PACK"))+11), "the head alone": grown.Bytes()[:90],
	} {
		if _, err := l.GrowBundle(t.Context(), tip, from, has, section(bad), io.Discard); !errors.As(err, new(*bundle.Error)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func section(raw []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(raw), 0, int64(len(raw)))
}

func flipped(raw []byte, at int) []byte {
	out := bytes.Clone(raw)
	out[at] ^= 1
	return out
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
