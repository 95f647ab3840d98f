package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/attributes"
	"github.com/countersign-dev/countersign/gitstore/ignore"
	"github.com/countersign-dev/countersign/gitstore/index"
	"github.com/countersign-dev/countersign/gitstore/status"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Changed returns the paths whose file in the index or the working tree is not
// HEAD's: changed, deleted, or new and not ignored. Sorted. They are those of
// "git status --untracked-files=all", but for what is in other repositories
// below this one; Config says what the configuration asks for. core.fsmonitor is
// not run, and of filters only those that Config allows.
func (r *Repo) Changed(ctx context.Context) ([]string, error) {
	x, err := r.readIndex()
	if err != nil {
		return nil, err
	}
	staged, err := r.staged(ctx, x)
	if err != nil {
		return nil, fmt.Errorf("comparing the index with HEAD: %w", err)
	}
	if x.Sparse {
		there, err := r.isThere(x)
		if err == nil && there {
			x, err = r.expand(x)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the index: %w", err)
		}
	}
	lists, err := r.ignored()
	if err != nil {
		return nil, err
	}
	forms, err := r.forms(x)
	if err != nil {
		return nil, err
	}
	set := r.Config.values
	changed, err := status.Changed(r.worktree, x, status.Options{
		IgnoreMode: r.Config.IgnoreMode || runtime.GOOS == "windows", IgnoreCase: isTrue(set["core.ignorecase"]),
		NoLinks: isFalse(set["core.symlinks"]), IgnoreCtime: isFalse(set["core.trustctime"]),
		CheckLess: set["core.checkstat"] == "minimal",
		Sparse:    isTrue(set["core.sparsecheckout"]) && !isTrue(set["sparse.expectfilesoutsideofpatterns"]),
		Ignored:   lists, Submodule: r.submodule, Form: forms,
		Blob: func(id plumbing.Hash) ([]byte, error) { return readObject(r.objects, plumbing.BlobObject, id) },
	})
	if err != nil {
		return nil, fmt.Errorf("comparing the working tree with the index: %w", err)
	}
	changed = append(changed, staged...)
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

// forms returns how files are checked out by the attributes of the working tree,
// or, where it has none, of the index. A file that has an attribute which is not
// supported is compared as its bytes are.
func (r *Repo) forms(x *index.Index) (func(name string) (attributes.Form, error), error) {
	rules, err := r.Config.Attributes.Rules(func(name string) ([]byte, error) {
		root, err := os.OpenRoot(r.worktree)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		f, err := patch.Lookup(root.FS(), name)
		if f != nil {
			return f.Data, nil
		}
		if err != nil && !errors.As(err, new(*patch.Error)) {
			return nil, err
		}
		at := x.Search([]byte(name), 0, x.Len())
		if at == x.Len() || string(x.Name(at)) != name || x.Entry(at).Stage != 0 {
			return nil, nil
		}
		return readObject(r.objects, plumbing.BlobObject, x.Entry(at).ID)
	})
	if err != nil {
		return nil, err
	}
	return func(name string) (attributes.Form, error) {
		form, err := rules.Form(name)
		if errors.As(err, new(*attributes.UnsupportedError)) {
			return attributes.Form{}, nil
		}
		return form, err
	}, nil
}

// ignored are the lists of what is ignored that are not files of the working
// tree: the user's, then the repository's own.
func (r *Repo) ignored() (lists []ignore.List, err error) {
	for _, name := range []string{r.Config.Excludes, filepath.Join(r.gitDir, "info", "exclude")} {
		data, err := readPlain(name)
		if err != nil {
			return nil, fmt.Errorf("reading what is ignored: %w", err)
		}
		lists = append(lists, ignore.Parse(data))
	}
	return lists, nil
}

// submodule returns the commit that a repository below this one has checked
// out.
func (r *Repo) submodule(name string) (plumbing.Hash, bool) {
	dir := filepath.Join(r.worktree, filepath.FromSlash(name))
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return plumbing.ZeroHash, false
	}
	sub, err := Open(dir)
	if err != nil {
		return plumbing.ZeroHash, true // whatever it is, it is not the commit
	}
	head, err := sub.Head(context.Background())
	return plumbing.NewHash(head), !errors.Is(err, ErrNoCommits)
}

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
		tree = c.Tree
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
	return diffTrees(s.store, a, b, func(d treeChange) error {
		if same := d.old.id == d.new.id && indexMode(d.old.mode) == indexMode(d.new.mode); !same && (isFile(d.old) || isFile(d.new)) {
			s.paths = append(s.paths, prefix+d.path)
		}
		return nil
	})
}

// readIndex reads the index, which may be large, unless it is the one that was
// read last.
func (r *Repo) readIndex() (*index.Index, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
