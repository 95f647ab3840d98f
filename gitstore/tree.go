package gitstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// tree writes the tree that old becomes with these files, and returns its id.
// Only directories on the way to a file are read and written.
func (b builder) tree(old plumbing.Hash, files map[string][]byte) (plumbing.Hash, error) {
	t := &object.Tree{}
	if !old.IsZero() {
		var err error
		if t, err = object.GetTree(b.store, old); err != nil {
			return plumbing.ZeroHash, fmt.Errorf("reading tree %s: %w", old, err)
		}
	}
	entries := map[string]object.TreeEntry{}
	for _, e := range t.Entries {
		entries[e.Name] = e
	}
	if err := b.fill(entries, files); err != nil {
		return plumbing.ZeroHash, err
	}
	return b.putTree(entries)
}

func (b builder) fill(entries map[string]object.TreeEntry, files map[string][]byte) error {
	below := map[string]map[string][]byte{}
	for name, data := range files {
		dir, rest, nested := strings.Cut(name, "/")
		if nested {
			if below[dir] == nil {
				below[dir] = map[string][]byte{}
			}
			below[dir][rest] = data
			continue
		}
		h, err := b.blob(data)
		if err != nil {
			return err
		}
		entries[name] = object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: h}
	}
	for dir, files := range below {
		if e, ok := entries[dir]; ok && e.Mode != filemode.Dir {
			return fmt.Errorf("ledger: %q is not a directory", dir)
		}
		h, err := b.tree(entries[dir].Hash, files)
		if err != nil {
			return err
		}
		entries[dir] = object.TreeEntry{Name: dir, Mode: filemode.Dir, Hash: h}
	}
	return nil
}

// putTree writes entries in Git's order: a directory sorts as if its name
// ended in a slash.
func (b builder) putTree(entries map[string]object.TreeEntry) (plumbing.Hash, error) {
	t := &object.Tree{}
	for _, e := range entries {
		t.Entries = append(t.Entries, e)
	}
	slices.SortFunc(t.Entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	o := b.store.NewEncodedObject()
	if err := t.Encode(o); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("writing a tree: %w", err)
	}
	return b.put(o)
}

func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

func (b builder) blob(data []byte) (plumbing.Hash, error) {
	o := b.store.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	w, err := o.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := w.Write(data); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := w.Close(); err != nil {
		return plumbing.ZeroHash, err
	}
	return b.put(o)
}
