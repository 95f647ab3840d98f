package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/ignore"
	"github.com/countersign-dev/countersign/gitstore/status"
)

// Changed returns the paths whose file in the index or the working tree is not
// HEAD's: changed, deleted, or new and not ignored. Sorted. They are those of
// "git status --untracked-files=all", but for what is in other repositories
// below this one; Config says what the configuration asks for. Nothing that it
// names is run: neither core.fsmonitor nor a filter.
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
	set := r.Config.values
	changed, err := status.Changed(r.worktree, x, status.Options{
		IgnoreMode: r.Config.IgnoreMode || runtime.GOOS == "windows", IgnoreCase: isTrue(set["core.ignorecase"]),
		NoLinks: isFalse(set["core.symlinks"]), IgnoreCtime: isFalse(set["core.trustctime"]),
		CheckLess: set["core.checkstat"] == "minimal",
		Sparse:    isTrue(set["core.sparsecheckout"]) && !isTrue(set["sparse.expectfilesoutsideofpatterns"]),
		Ignored:   lists, Submodule: r.submodule,
		Blob: func(id plumbing.Hash) ([]byte, error) { return readObject(r.objects, plumbing.BlobObject, id) },
	})
	if err != nil {
		return nil, fmt.Errorf("comparing the working tree with the index: %w", err)
	}
	changed = append(changed, staged...)
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

// ignored are the lists of what is ignored that are not files of the working
// tree: the user's, then the repository's own.
func (r *Repo) ignored() (lists []ignore.List, err error) {
	for _, name := range []string{r.Config.Excludes, filepath.Join(r.gitDir, "info", "exclude")} {
		info, err := os.Stat(name)
		if name == "" || errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(name)
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
