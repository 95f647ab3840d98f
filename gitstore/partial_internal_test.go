package gitstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// T80 Of many packs of a copy git makes few: processes at work in it lose nothing.
func TestT80CopyIsRepacked(t *testing.T) {
	defer func(was int) { maxCachePacks = was }(maxCachePacks)
	maxCachePacks = 4
	dir := t.TempDir()
	var slow *git.Objects // a process that stays
	ids := map[packfile.ID]bool{}
	for n := range 30 {
		opened, err := openPartial(dir, new(wire.Server))
		fatal(t, err)
		batch := &packfile.Batch{}
		made, err := batch.Add(packfile.Object{Type: plumbing.BlobObject, Data: fmt.Append(nil, n)})
		if err == nil {
			err = packfile.Hold(opened.own.Dir, batch, func() error { return nil })
		}
		if slow == nil {
			slow = opened.own
		}
		fatal(t, err)
		ids[made[0]] = true
		for id := range ids {
			if _, err := slow.View(id); err != nil {
				t.Errorf("after %d: %v", n, err)
			}
		}
		packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
		if err != nil || len(packs) > maxCachePacks+2 {
			t.Errorf("%d packs after %d, %v", len(packs), n, err)
		}
		if opened.own != slow {
			err = opened.own.Close()
		}
		fatal(t, err)
	}
	fatal(t, slow.Close())
}

// TestCopyCannotBeMade: the error says what for.
func TestCopyCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	fatal(t, os.WriteFile(file, nil, 0o666))
	_, err := (&Repo{gitDir: file, objects: new(git.Objects)}).openOwn()
	if err == nil || !strings.HasPrefix(err.Error(), "opening the fetched objects: ") {
		t.Errorf("%v", err)
	}
	if err := os.Symlink(file, filepath.Join(filepath.Dir(file), "objects")); err != nil {
		t.Skip(err)
	}
	if _, err := openPartial(filepath.Dir(file), new(wire.Server)); err == nil || !strings.HasPrefix(err.Error(), "opening the copy of the ledger: ") {
		t.Errorf("%v", err)
	}
}
