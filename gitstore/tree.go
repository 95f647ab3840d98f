package gitstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

// edits are what becomes of paths: their new content, nil for a path that goes.
type edits map[string]*patch.File

// tree writes the tree that old becomes with these edits, and returns its id;
// the zero id for a tree that is left empty. Only directories on the way to an
// edited path are read and written.
func (b builder) tree(old plumbing.Hash, files edits) (plumbing.Hash, error) {
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
	if err := b.fill(entries, files); err != nil || len(entries) == 0 {
		return plumbing.ZeroHash, err
	}
	return b.putTree(entries)
}

// fill removes first, then descends, then adds, so that a file can become a
// directory and the reverse.
func (b builder) fill(entries map[string]object.TreeEntry, files edits) error {
	below := map[string]edits{}
	var here []string
	for name, f := range files {
		if dir, rest, nested := strings.Cut(name, "/"); nested {
			if below[dir] == nil {
				below[dir] = edits{}
			}
			below[dir][rest] = f
		} else if f == nil {
			delete(entries, name)
		} else {
			here = append(here, name)
		}
	}
	for dir, inside := range below {
		if err := b.descend(entries, dir, inside); err != nil {
			return err
		}
	}
	for _, name := range here {
		h, err := b.blob(files[name].Data)
		if err != nil {
			return err
		}
		entries[name] = object.TreeEntry{Name: name, Mode: modes[files[name].Mode], Hash: h}
	}
	return nil
}

var modes = map[patch.Mode]filemode.FileMode{patch.Regular: filemode.Regular, patch.Executable: filemode.Executable}

func (b builder) descend(entries map[string]object.TreeEntry, dir string, inside edits) error {
	if e, ok := entries[dir]; ok && e.Mode != filemode.Dir {
		return fmt.Errorf("%q is not a directory", dir)
	}
	h, err := b.tree(entries[dir].Hash, inside)
	if err != nil {
		return err
	}
	delete(entries, dir)
	if !h.IsZero() {
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
