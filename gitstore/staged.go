package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/index"
)

// staged returns the paths at which the index is not what HEAD has.
func (r *Repo) staged(ctx context.Context, x *index.Index) ([]string, error) {
	var tree plumbing.Hash
	head, err := r.Head(ctx)
	switch {
	case errors.Is(err, ErrNoCommits):
	case err != nil:
		return nil, err
	default:
		c, err := readCommit(r.objects, plumbing.NewHash(head))
		if err != nil {
			return nil, err
		}
		tree = c.tree
	}
	s := stagedPaths{x: x, store: r.objects}
	err = s.compare(tree, x.Root(), 0, x.Len(), "")
	return s.paths, err
}

// stagedPaths collects the paths at which an index is not what a tree has.
type stagedPaths struct {
	x     *index.Index
	store source
	paths []string
}

// compare compares a directory's tree, the zero id where there is none, with
// the entries from lo up to hi, which are all that are below it. What git has
// noted to be the same is not read.
func (s *stagedPaths) compare(tree plumbing.Hash, noted *index.Tree, lo, hi int, prefix string) error {
	if noted != nil && noted.Valid && noted.ID == tree {
		return nil
	}
	var entries []treeEntry
	if !tree.IsZero() {
		var err error
		if entries, err = readTree(s.store, tree); err != nil {
			return err
		}
		if !slices.IsSortedFunc(entries, compareEntries) {
			return fmt.Errorf("tree %s is malformed: it is not sorted", tree)
		}
	}
	for _, e := range entries {
		name := prefix + e.name
		if e.mode == filemode.Dir {
			name += "/"
		}
		at := s.x.Search([]byte(name), lo, hi)
		if err := s.added(lo, at); err != nil {
			return err
		}
		var err error
		if e.mode == filemode.Dir {
			lo, err = s.dir(e, noted, at, hi, name)
		} else {
			lo = s.file(e, at, hi, name)
		}
		if err != nil {
			return err
		}
	}
	return s.added(lo, hi)
}

// added notes entries that the tree has not.
func (s *stagedPaths) added(lo, hi int) error {
	for i := lo; i < hi; i++ {
		switch e := s.x.Entry(i); {
		case e.IntentToAdd: // it is not in the index yet
		case e.Mode == index.ModeDir:
			if err := s.all(e.ID, string(e.Name)); err != nil {
				return err
			}
		default:
			s.paths = append(s.paths, string(e.Name))
		}
	}
	return nil
}

// all notes every file of a tree.
func (s *stagedPaths) all(tree plumbing.Hash, prefix string) error {
	return eachFile(s.store, tree, prefix, func(name string, _ treeEntry) { s.paths = append(s.paths, name) })
}

func (s *stagedPaths) file(e treeEntry, at, hi int, name string) (next int) {
	next = at
	for next < hi && string(s.x.Name(next)) == name {
		next++
	}
	if next > at {
		have := s.x.Entry(at)
		if have.Stage == 0 && !have.IntentToAdd && have.ID == e.id && have.Mode == uint32(indexMode(e.mode)) {
			return next
		}
	}
	s.paths = append(s.paths, name)
	return next
}

func (s *stagedPaths) dir(e treeEntry, noted *index.Tree, at, hi int, name string) (next int, err error) {
	if at < hi && string(s.x.Name(at)) == name { // the whole directory is one entry
		if have := s.x.Entry(at); have.ID != e.id {
			err = s.trees(have.ID, e.id, name)
		}
		return at + 1, err
	}
	next = at
	if at < hi && bytes.HasPrefix(s.x.Name(at), []byte(name)) {
		next = s.x.Below(at, hi, len(name))
		return next, s.compare(e.id, noted.Dir(e.name), at, next, name)
	}
	return next, s.all(e.id, name)
}

// trees notes the files in which two trees differ.
func (s *stagedPaths) trees(a, b plumbing.Hash, prefix string) error {
	files := map[string]treeEntry{}
	err := eachFile(s.store, a, prefix, func(name string, e treeEntry) { files[name] = e })
	if err != nil {
		return err
	}
	err = eachFile(s.store, b, prefix, func(name string, e treeEntry) {
		if files[name] != e {
			s.paths = append(s.paths, name)
		}
		delete(files, name)
	})
	for name := range files {
		s.paths = append(s.paths, name)
	}
	return err
}
