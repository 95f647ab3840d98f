// Package gitstore keeps the ledger in Git and serves commits as file systems.
// It is, with packfile below it, the only door to go-git; the git program is
// never run.
package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/countersign-dev/countersign/gitstore/index"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// What Open and Head return besides other errors.
var (
	ErrNotRepository = errors.New("not a Git repository, nor below one")
	ErrNoCommits     = errors.New("the repository has no commits yet")
)

// An UnsupportedError is a repository of a kind that is not read.
type UnsupportedError struct{ Err error }

func (e *UnsupportedError) Error() string {
	return "this kind of repository is not supported: " + e.Err.Error()
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// A Repo is an open Git repository, for one goroutine (go-git's own storage is).
// The trees that it serves may be read from several.
type Repo struct {
	// FetchLimit is how many bytes a pack of Fetch may have; 0 is
	// DefaultFetchLimit.
	FetchLimit int64
	// Config is what Changed goes by, as Settings returns it; the zero value is
	// what git does without a configuration.
	Config Settings

	git     *git.Repository
	objects *packfile.Store
	gitDir  string // the directory that holds the refs
	ownDir  string // the working tree's own Git directory, gitDir but for linked worktrees

	worktree string // root of the working tree, "" for a bare repository

	brought []plumbing.Hash             // tips that Fetch has brought
	built   map[plumbing.Hash]notedPack // what BuildCommit made that no ref leads to, held
	index   *index.Index                // as it was read last
}

// Open opens the repository that dir is in, or a bare one that dir is.
func Open(dir string) (*Repo, error) {
	at, err := locate(dir)
	if err != nil {
		return nil, err
	}
	raw, err := readConfig(filepath.Join(at.common, "config"))
	if err != nil {
		return nil, err
	}
	if err := checkFormat(raw); err != nil {
		return nil, err
	}
	if isTrue(raw.Section("core").Option("bare")) {
		at.worktree = ""
	}
	files := dotgit.NewRepositoryFilesystem(osfs.New(at.own), osfs.New(at.common))
	store := filesystem.NewStorage(files, cache.NewObjectLRUDefault())
	r := &Repo{gitDir: at.common, ownDir: at.own, worktree: at.worktree, built: map[plumbing.Hash]notedPack{}}
	var tree billy.Filesystem
	if at.worktree != "" {
		tree = osfs.New(at.worktree)
	}
	if r.git, err = git.Open(storage{store, raw}, tree); err != nil {
		return nil, fmt.Errorf("opening the repository: %w", err)
	}
	r.objects, err = packfile.Open(r.gitObjects(), r.ownObjects())
	return r, err
}

// Close closes the files that are open, and lets `git gc` have the commits that
// were built and that no ref leads to.
func (r *Repo) Close() error { return r.objects.Close() }

// Init makes an empty repository with a working tree at dir.
func Init(dir string) (*Repo, error) {
	_, err := git.PlainInitWithOptions(dir, &git.PlainInitOptions{
		InitOptions: git.InitOptions{DefaultBranch: plumbing.Main},
	})
	if err != nil {
		return nil, fmt.Errorf("making a repository: %w", err)
	}
	return Open(dir)
}

// Dir is the repository's Git directory.
func (r *Repo) Dir() string { return r.gitDir }

// StateDir is a directory of the program's own inside the working tree's Git
// directory. It
// may not exist yet.
func (r *Repo) StateDir() string { return filepath.Join(r.ownDir, "countersign") }

// Worktree returns the root of the working tree; "" means a bare repository.
func (r *Repo) Worktree() (string, error) { return r.worktree, nil }

// Head returns the commit id of HEAD.
func (r *Repo) Head(context.Context) (string, error) {
	ref, err := r.git.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", ErrNoCommits
	}
	if err != nil {
		return "", fmt.Errorf("reading HEAD: %w", err)
	}
	return ref.Hash().String(), nil
}

// Tree serves a commit's tree.
func (r *Repo) Tree(_ context.Context, commit string) (fs.FS, error) {
	tree, err := commitTree(r.objects, plumbing.NewHash(commit))
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// TreeID returns the id of a commit's tree.
func (r *Repo) TreeID(_ context.Context, commit string) (string, error) {
	c, err := readCommit(r.objects, plumbing.NewHash(commit))
	if err != nil {
		return "", err
	}
	return c.tree.String(), nil
}

func commitTree(s source, commit plumbing.Hash) (*treeFS, error) {
	c, err := readCommit(s, commit)
	if err != nil {
		return nil, err
	}
	root, err := readTree(s, c.tree)
	if err != nil {
		return nil, fmt.Errorf("reading the tree of commit %s: %w", commit, err)
	}
	return newTreeFS(s, root)
}

// Index compares the files with their index entries.
func (r *Repo) Index(_ context.Context, files []patch.Change) (code.IndexState, error) {
	var state code.IndexState
	if r.worktree == "" {
		return state, nil
	}
	x, err := r.readIndex()
	if err != nil {
		return state, err
	}
	if x.Sparse {
		if x, err = r.expand(x); err != nil {
			return state, fmt.Errorf("reading the index: %w", err)
		}
	}
	for _, f := range files {
		e, found := x.Find(f.Path)
		if e.SkipWorktree {
			state.Sparse = append(state.Sparse, f.Path)
		}
		if found != (f.Before != nil) || found && !indexed(e, f.Before) {
			state.Staged = append(state.Staged, f.Path)
		}
	}
	return state, nil
}

// indexed reports whether an entry is what the commit has; a stage is an
// unmerged file.
func indexed(e index.Entry, f *patch.File) bool {
	return e.Stage == 0 && e.Mode == uint32(f.Mode) && e.ID.String() == f.BlobID()
}
