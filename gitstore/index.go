package gitstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/index"
)

// readIndex reads the index, which may be large, unless it is the one that was
// read last.
func (r *Repo) readIndex() (*index.Index, error) {
	name := filepath.Join(r.ownDir, "index")
	if sum, err := indexSum(name); err == nil && !sum.IsZero() && r.index != nil && sum == r.index.Sum() {
		return r.index, nil
	}
	x, err := index.Read(name)
	switch {
	case errors.Is(err, index.ErrSplit):
		return nil, &UnsupportedError{fmt.Errorf("its index cannot be read: %w; \"git update-index --no-split-index\" writes one that can", err)}
	case err != nil:
		return nil, &UnsupportedError{fmt.Errorf("its index cannot be read: %w", err)}
	}
	r.index = x
	return x, nil
}

// indexSum is the end of the index file: the SHA-1 of what is before
// (gitformat-index(5)), or zeros where Git was told not to compute it.
func indexSum(name string) (sum plumbing.Hash, err error) {
	f, err := os.Open(name)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	if _, err = f.Seek(-int64(len(sum)), io.SeekEnd); err == nil {
		_, err = io.ReadFull(f, sum[:])
	}
	return sum, err
}

// expand has in the index each file that it names with its directory alone.
func (r *Repo) expand(x *index.Index) (*index.Index, error) {
	return x.Expand(func(tree plumbing.Hash) (files []index.File, err error) {
		err = eachFile(r.objects, tree, "", func(name string, e treeEntry) {
			files = append(files, index.File{Name: name, Mode: uint32(e.mode), ID: e.id})
		})
		return files, err
	})
}

// eachFile calls do for what is not a directory in a tree and below it, in the
// order of an index.
func eachFile(s source, tree plumbing.Hash, prefix string, do func(name string, e treeEntry)) error {
	entries, err := readTree(s, tree)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.mode != filemode.Dir {
			e.mode = indexMode(e.mode)
			do(prefix+e.name, e)
		} else if err := eachFile(s, e.id, prefix+e.name+"/", do); err != nil {
			return err
		}
	}
	return nil
}

// indexMode is the mode that an entry of a tree has in an index.
func indexMode(m filemode.FileMode) filemode.FileMode {
	switch {
	case m&0o170000 != filemode.Deprecated&0o170000:
		return m
	case m&0o100 != 0:
		return filemode.Executable
	}
	return filemode.Regular
}

// isThere reports whether a directory that the index has as one entry is
// checked out all the same.
func (r *Repo) isThere(x *index.Index) (bool, error) {
	for i := range x.Len() {
		e := x.Entry(i)
		if e.Mode != index.ModeDir {
			continue
		}
		_, err := os.Lstat(filepath.Join(r.worktree, filepath.FromSlash(string(e.Name))))
		if !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}
