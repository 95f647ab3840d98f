package gitstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// T80 A copy that has grown too large begins anew in another directory: processes
// at work in those before lose nothing, and what nobody uses is removed.
func TestT80CopyBeginsAnew(t *testing.T) {
	defer func(was int) { maxCachePacks = was }(maxCachePacks)
	maxCachePacks = 2
	dir := filepath.Join(t.TempDir(), "copy")
	open := func(want string) *packfile.Store {
		t.Helper()
		got, err := partialObjects(dir)
		if err != nil || filepath.Base(got) != want {
			t.Fatalf("%s, %v; want %s", got, err, want)
		}
		opened, err := openPartial(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return opened.own
	}
	write := func(s *packfile.Store, text string) plumbing.Hash {
		t.Helper()
		batch := &packfile.Batch{}
		ids, err := batch.Add(packfile.Object{Type: plumbing.BlobObject, Data: []byte(text)})
		if err == nil {
			err = writeOwn(s, batch)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ids[0]
	}
	var slow *packfile.Store // a process that stays in the first directory
	var seen plumbing.Hash
	for _, c := range []struct {
		want string
		left []string
	}{
		{"objects", []string{"objects"}},
		{"objects-1", []string{"objects", "objects-1"}},
		{"objects-2", []string{"objects", "objects-1", "objects-2"}},
		{"objects-3", []string{"objects", "objects-2", "objects-3"}},
		{"objects-4", []string{"objects-3", "objects-4"}},
	} {
		for range 2 { // a second process takes the same
			s := open(c.want)
			var left []string
			entries, err := os.ReadDir(dir)
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if err != nil || !slices.Equal(left, c.left) {
				t.Errorf("%v are left, %v; want %v", left, err, c.left)
			}
			if slow == nil {
				slow, seen = s, write(s, "seen")
			} else if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if c.want != "objects-4" {
			write(slow, c.want)
			if _, err := slow.Read(seen); err != nil {
				t.Errorf("%s has begun: %v", c.want, err)
			}
		}
		for n := range 3 {
			if err := os.MkdirAll(filepath.Join(dir, c.want, "pack"), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, c.want, "pack", fmt.Sprintf("pack-%d.pack", n)), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if c.want == "objects-3" {
			if err := slow.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string]int{"objects": 0, "objects-7": 7, "objects-0": -1, "objects-07": -1, "objects-": -1, "other": -1} {
		if got := generationOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// T80 What was fetched to a shallow or partial clone stays while a process reads
// it, however often others fetch.
func TestT80FetchedObjectsBeginAnew(t *testing.T) {
	defer func(was int) { maxCachePacks = was }(maxCachePacks)
	maxCachePacks = 2
	dir := t.TempDir()
	reader, err := Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) plumbing.Hash {
		t.Helper()
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		own, err := r.openOwn()
		if err != nil {
			t.Fatal(err)
		}
		batch := &packfile.Batch{}
		ids, err := batch.Add(packfile.Object{Type: plumbing.BlobObject, Data: []byte(text)})
		if err == nil {
			err = writeOwn(own, batch)
		}
		if err = errors.Join(err, own.Close(), r.Close()); err != nil {
			t.Fatal(err)
		}
		return ids[0]
	}
	first := write("first")
	if !reader.has(first) {
		t.Fatal("it does not read what was fetched")
	}
	for n := range 3 * maxCachePacks {
		write(fmt.Sprint(n))
	}
	if !reader.has(first) {
		t.Error("what it reads is gone")
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	write("last")
	if reader.has(first) {
		t.Error("it does not begin anew")
	}
}

// TestCopyCannotBeMade: the error says what for.
func TestCopyCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := (&Repo{gitDir: file}).openOwn()
	if err == nil || !strings.HasPrefix(err.Error(), "opening the fetched objects: ") {
		t.Errorf("%v", err)
	}
	if err := os.Symlink(file, filepath.Join(filepath.Dir(file), "objects")); err != nil {
		t.Skip(err)
	}
	if _, err := openPartial(filepath.Dir(file), nil); err == nil || !strings.HasPrefix(err.Error(), "opening the copy of the ledger: ") {
		t.Errorf("%v", err)
	}
}
