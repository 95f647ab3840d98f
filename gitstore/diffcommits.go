package gitstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// What a difference may hold: far more than any Policy lets through. Trees
// that hold the same ones again and again are small and never end.
const (
	maxDiffPaths = 200_000
	maxDiffBytes = 256 << 20
)

// Diff returns what turns the files of one commit into those of another. Only
// directories that differ are read. A difference with a symbolic link or a
// submodule in it, one with a path that patch.CheckPath refuses, one that is
// too large and one that is nothing are a *patch.Error.
func (r *Repo) Diff(_ context.Context, from, to string) (patch.Patchset, error) {
	old, err := readCommit(r.objects, plumbing.NewHash(from))
	if err != nil {
		return patch.Patchset{}, err
	}
	next, err := readCommit(r.objects, plumbing.NewHash(to))
	if err != nil {
		return patch.Patchset{}, err
	}
	d := &differences{store: r.objects, after: map[string]*patch.File{}}
	root := treeChange{"", treeEntry{mode: filemode.Dir, id: old.tree}, treeEntry{mode: filemode.Dir, id: next.tree}}
	if err = d.add(root); err == nil {
		err = diffTrees(r.objects, old.tree, next.tree, d.add)
	}
	if err != nil {
		return patch.Patchset{}, err
	}
	base, err := commitTree(r.objects, plumbing.NewHash(from))
	if err != nil {
		return patch.Patchset{}, err
	}
	return patch.Between(base, d.after)
}

// FirstParent returns the commit that another was made on; of a merge, the one
// that it was merged into. One that is not here is a *CutOffError.
func (r *Repo) FirstParent(_ context.Context, of string) (string, error) {
	c, err := readCommit(r.objects, plumbing.NewHash(of))
	switch {
	case err != nil:
		return "", err
	case len(c.parents) == 0:
		return "", fmt.Errorf("commit %s has no parent", of)
	case !r.has(c.parents[0]):
		return "", &CutOffError{c.parents[0].String()}
	}
	return c.parents[0].String(), nil
}

// A NoCommitError is a name that names no commit here.
type NoCommitError struct{ Name string }

func (e *NoCommitError) Error() string { return fmt.Sprintf("%+q names no commit here", e.Name) }

// Commit returns the id of the commit that HEAD, a branch, a remote branch
// ("origin/main"), a tag, or the full name of a ref names, or that is a whole id
// itself. What is none is a *NoCommitError: also the beginning of an id, which
// another commit can be made to have.
func (r *Repo) Commit(ctx context.Context, name string) (string, error) {
	id, err := name, error(nil)
	switch {
	case name == "HEAD":
		return r.Head(ctx)
	case !plumbing.IsHash(name):
		id, err = r.named(name)
	}
	if err != nil {
		return "", err
	}
	if _, err := readCommit(r.objects, plumbing.NewHash(id)); errors.Is(err, packfile.ErrMissing) {
		return "", &NoCommitError{name}
	} else if err != nil {
		return "", err
	}
	return id, nil
}

func (r *Repo) named(name string) (string, error) {
	for _, prefix := range []string{"refs/heads/", "refs/remotes/", "refs/tags/", ""} {
		if _, err := refName(prefix + name); err != nil {
			continue
		}
		if tip, err := r.tip(plumbing.ReferenceName(prefix + name)); err != nil || !tip.IsZero() {
			if err == nil {
				tip, err = r.commitNamed(prefix + name)
			}
			return tip.String(), err
		}
	}
	return "", &NoCommitError{name}
}

// differences are the files of a tree that differ from another's.
type differences struct {
	store source
	after map[string]*patch.File
	paths int
	bytes int64
}

func (d *differences) add(c treeChange) error {
	if d.paths++; d.paths > maxDiffPaths {
		return &patch.Error{Message: fmt.Sprintf("changes more than %d files and directories", maxDiffPaths)}
	}
	for _, e := range []treeEntry{c.old, c.new} {
		if err := d.check(c.path, e); err != nil {
			return err
		}
	}
	// A file in the place of a directory, or the other way round, is a change of
	// its own.
	switch {
	case c.new.mode.IsFile():
		data, err := readObject(d.store, plumbing.BlobObject, c.new.id)
		d.after[c.path] = &patch.File{Mode: fileMode(c.new.mode), Data: data}
		return err
	case c.old.mode.IsFile():
		d.after[c.path] = nil
	}
	return nil
}

// check refuses what no Patchset holds, and a directory that is not as git
// writes it: two readers could differ in what is in it.
func (d *differences) check(path string, e treeEntry) error {
	switch e.mode {
	case filemode.Empty:
		return nil
	case filemode.Dir:
		return d.checkDir(e.id)
	case filemode.Regular, filemode.Executable, filemode.Deprecated:
		_, size, err := d.store.Size(e.id)
		if d.bytes += size; err == nil && d.bytes > maxDiffBytes {
			err = &patch.Error{Path: path, Message: fmt.Sprintf("the changed files have more than %d bytes", maxDiffBytes)}
		}
		return err
	case filemode.Symlink:
		return &patch.Error{Path: path, Message: "symbolic links are refused"}
	case filemode.Submodule:
		return &patch.Error{Path: path, Message: "submodules are refused"}
	}
	return &patch.Error{Path: path, Message: fmt.Sprintf("unknown file mode %o", uint32(e.mode))}
}

func (d *differences) checkDir(id plumbing.Hash) error {
	entries, err := readTree(d.store, id)
	if err != nil {
		return err
	}
	if !slices.IsSortedFunc(entries, compareEntries) {
		return fmt.Errorf("tree %s is malformed: it is not sorted", id)
	}
	if _, err := newNode(entries); err != nil {
		return fmt.Errorf("tree %s %w", id, err)
	}
	return nil
}

func fileMode(m filemode.FileMode) patch.Mode {
	if m == filemode.Executable {
		return patch.Executable
	}
	return patch.Regular
}
