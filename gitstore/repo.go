// Package gitstore keeps the ledger in Git and serves commits as file systems.
// It is the only door to go-git; the git program is never run.
package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// What Open and Head return besides other errors.
var (
	ErrNotRepository = errors.New("not a Git repository, nor below one")
	ErrNoCommits     = errors.New("the repository has no commits yet")
)

// An UnsupportedError is a repository of a kind that go-git does not read.
type UnsupportedError struct{ Err error }

func (e *UnsupportedError) Error() string {
	return "this kind of repository is not supported: " + e.Err.Error()
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// A Repo is an open Git repository, for one goroutine (go-git's own storage is).
type Repo struct {
	git     *git.Repository
	objects objects
	gitDir  string // the directory that holds the refs
	ownDir  string // the working tree's own Git directory, gitDir but for linked worktrees
}

// Open opens the repository that dir is in, or a bare one that dir is.
func Open(dir string) (*Repo, error) {
	g, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: !isGitDir(dir), EnableDotGitCommonDir: true})
	switch {
	case errors.Is(err, git.ErrRepositoryNotExists):
		return nil, ErrNotRepository
	case errors.Is(err, git.ErrUnsupportedExtensionRepositoryFormatVersion), errors.Is(err, git.ErrUnknownExtension),
		errors.Is(err, git.ErrUnsupportedRepositoryFormatVersion):
		return nil, &UnsupportedError{err}
	case err != nil:
		return nil, fmt.Errorf("opening the repository: %w", err)
	}
	store, ok := g.Storer.(*filesystem.Storage)
	if !ok {
		return nil, fmt.Errorf("opening the repository: unexpected storage %T", g.Storer)
	}
	gitDir, err := filepath.Abs(store.Filesystem().Root())
	if err != nil {
		return nil, fmt.Errorf("opening the repository: %w", err)
	}
	r := &Repo{git: g, gitDir: gitDir, ownDir: gitDir}
	if err := r.checkFormat(); err != nil {
		return nil, err
	}
	if err := r.commonDir(store); err != nil {
		return nil, err
	}
	borrowed, err := borrow(r.gitDir, 1)
	r.objects = objects{store, borrowed}
	return r, err
}

// isGitDir tells whether a directory is itself what .git is elsewhere, by what
// git looks for.
func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// checkFormat refuses formats that come after us; go-git takes them for the
// oldest.
func (r *Repo) checkFormat() error {
	cfg, err := r.git.Config()
	if err != nil {
		return fmt.Errorf("reading the Git configuration: %w", err)
	}
	switch v := cfg.Raw.Section("core").Option("repositoryformatversion"); v {
	case "", "0", "1":
		return nil
	default:
		return &UnsupportedError{fmt.Errorf("core.repositoryFormatVersion is %q", v)}
	}
}

// commonDir finds the directory of a linked worktree's main repository, where
// refs outside refs/worktree live (gitrepository-layout(5), commondir).
func (r *Repo) commonDir(store *filesystem.Storage) error {
	f, err := store.Filesystem().Open("commondir")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the repository: %w", err)
	}
	defer f.Close()
	buf := make([]byte, 4096)
	n, err := f.Read(buf)
	if err != nil {
		return fmt.Errorf("reading commondir: %w", err)
	}
	dir := string(trimLF(buf[:n]))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.gitDir, dir)
	}
	r.gitDir = filepath.Clean(dir)
	return nil
}

func trimLF(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

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
func (r *Repo) Worktree() (string, error) {
	w, err := r.git.Worktree()
	if errors.Is(err, git.ErrIsBareRepository) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("opening the working tree: %w", err)
	}
	return w.Filesystem.Root(), nil
}

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
	return r.tree(plumbing.NewHash(commit))
}

func (r *Repo) tree(commit plumbing.Hash) (fs.FS, error) {
	c, err := object.GetCommit(r.objects, commit)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	t, err := object.GetTree(r.objects, c.TreeHash)
	if err != nil {
		return nil, fmt.Errorf("reading the tree of commit %s: %w", commit, err)
	}
	return newTreeFS(r.objects, t)
}

// Staged returns those of the files whose index entry is not their Before.
func (r *Repo) Staged(_ context.Context, files []patch.Change) ([]string, error) {
	bare, err := r.Worktree()
	if bare == "" || err != nil {
		return nil, err
	}
	idx, err := r.git.Storer.Index()
	if err != nil {
		return nil, fmt.Errorf("reading the index: %w", err)
	}
	entries := map[string]string{}
	for _, e := range idx.Entries {
		entries[e.Name] = fmt.Sprintf("%06o %s %d", uint32(e.Mode), e.Hash, e.Stage) // a stage is an unmerged file
	}
	var out []string
	for _, f := range files {
		want := ""
		if f.Before != nil {
			want = fmt.Sprintf("%s %s 0", f.Before.Mode, f.Before.BlobID())
		}
		if entries[f.Path] != want {
			out = append(out, f.Path)
		}
	}
	return out, nil
}
