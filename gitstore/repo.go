// Package gitstore keeps the ledger in Git and serves commits as file systems.
// It is, with packfile below it, the only door to go-git. Where a repository is,
// of which kind, and whether it may be opened is git's word.
package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/fault"
)

// What Open and Head return besides other errors.
var (
	ErrNotRepository = fault.Refuse("not a Git repository, nor below one", "run it inside a Git repository, or name one with -C DIR")
	ErrNoCommits     = fault.Refuse("the repository has no commits yet", `git commit --allow-empty -m "first commit"`)
)

// An UnsupportedError is a repository of a kind that is not read.
type UnsupportedError struct{ Err error }

func (e *UnsupportedError) Error() string {
	return "this kind of repository is not supported: " + e.Err.Error()
}

func (e *UnsupportedError) Hint() string {
	var format *fault.Error
	if errors.As(e.Err, &format) {
		return format.Try
	}
	return "a plain clone of it works: git clone --no-local"
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// A Repo is an open Git repository. Several goroutines may use it, and the trees
// that it serves; of go-git's storage, which is for one, only refs are read then.
type Repo struct {
	// Config is what Settings returned; nothing here goes by it.
	Config Settings

	objects *git.Objects
	trees   *lister // of the same objects
	opened  string  // the commit of HEAD when it was opened, "" for none that git told
	gitDir  string  // the directory that holds the refs
	ownDir  string  // the working tree's own Git directory, gitDir but for linked worktrees

	worktree string // root of the working tree, "" for a bare repository

	partial func() (bool, error) // isPartial, asked once: of one that becomes so meanwhile, what is missing is an error

	fetching sync.Mutex    // held by who fetches: the next one finds what was brought
	brought  []packfile.ID // tips that Fetch has brought

	mu    sync.Mutex                    // for what follows
	built map[packfile.ID]packfile.Held // what BuildCommit made that no ref leads to
	said  []git.Setting                 // what Settings read, nil before
}

// Open opens the repository that dir is in, or a bare one that dir is.
func Open(dir string) (*Repo, error) {
	at, err := locate(dir)
	if err != nil {
		return nil, err
	}
	r := &Repo{opened: at.head, gitDir: at.common, ownDir: at.own, worktree: at.worktree, built: map[packfile.ID]packfile.Held{}}
	r.objects = &git.Objects{Dir: r.gitObjects(), More: r.ownObjects(), Format: at.format}
	r.trees = &lister{source: r.objects}
	r.partial = sync.OnceValues(r.isPartial)
	return r, nil
}

// batch is an empty one, of objects that are named as those of the repository.
func (r *Repo) batch() *packfile.Batch { return &packfile.Batch{Format: r.objects.Format} }

// id is the ID that a text is, and None where it is none of this repository's: to git the whole ID of another format
// is the name of a ref, or the beginning of an ID.
func (r *Repo) id(text string) packfile.ID {
	if id := packfile.ParseID(text); packfile.FormatOf(id) == r.objects.Format {
		return id
	}
	return packfile.None
}

// name is the same for git.
func (r *Repo) name(text string) string { return r.objects.Format.Hex(r.id(text)) }

// Format is how the repository names its objects.
func (r *Repo) Format() packfile.Format { return r.objects.Format }

// Close ends the git process that reads objects, and lets `git gc` have the commits that were
// built and that no ref leads to.
func (r *Repo) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, held := range r.built {
		held.Release()
	}
	clear(r.built)
	return r.objects.Close()
}

// Init makes an empty repository with a working tree at dir.
func Init(dir string) (*Repo, error) {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	if err == nil {
		return nil, errors.New("making a repository: repository already exists")
	}
	if dir, err = filepath.Abs(dir); err == nil {
		_, err = git.Run(context.Background(), "", "init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main", "--", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("making a repository: %w", err)
	}
	return Open(dir)
}

// CommitAll commits every file that is new or changed and not ignored, as "git add --all" and
// "git commit" do, and returns the commit id. No filter, hook or signing program is run. It is for
// a working tree of the program's own: in submodules git goes by their configuration.
func (r *Repo) CommitAll(ctx context.Context, message, author string, when time.Time) (string, error) {
	at := fmt.Sprintf("@%d %s", when.Unix(), when.Format("-0700"))
	c, err := git.Command{Dir: r.worktree, Env: []string{
		"GIT_AUTHOR_NAME=" + author, "GIT_AUTHOR_EMAIL=" + author + "@localhost", "GIT_AUTHOR_DATE=" + at,
		"GIT_COMMITTER_NAME=" + author, "GIT_COMMITTER_EMAIL=" + author + "@localhost", "GIT_COMMITTER_DATE=" + at,
	}}.Set("maintenance.auto", "false").WithoutPrograms(ctx)
	add, commit := c, c
	add.Args = append(slices.Clone(c.Args), "add", "--all")
	commit.Args = append(slices.Clone(c.Args), "commit", "--quiet", "--no-gpg-sign", "--cleanup=verbatim", "--message="+message)
	if err == nil {
		_, err = add.Output(ctx)
	}
	if err == nil {
		_, err = commit.Output(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("committing: %w", err)
	}
	return r.Head(ctx)
}

// Dir is the repository's Git directory.
func (r *Repo) Dir() string { return r.gitDir }

// StateDir is a directory of the program's own inside the working tree's Git
// directory. It
// may not exist yet.
func (r *Repo) StateDir() string { return filepath.Join(r.ownDir, "countersign") }

// Worktree returns the root of the working tree; "" means a bare repository.
func (r *Repo) Worktree() string { return r.worktree }

// Head returns the commit id of HEAD.
func (r *Repo) Head(context.Context) (string, error) {
	head, err := r.ask("rev-parse", "--verify", "--quiet", "HEAD")
	if err == nil {
		return head, nil
	}
	branch, branchErr := r.branch()
	if branchErr == nil {
		tip, tipErr := r.tip(branch)
		if tipErr == nil && tip.IsZero() {
			return "", ErrNoCommits
		}
		err = cmp.Or(tipErr, err)
	}
	return "", fmt.Errorf("reading HEAD: %w", err)
}

// HeadOpened is Head as it was when the repository was opened.
func (r *Repo) HeadOpened(ctx context.Context) (string, error) {
	if r.opened == "" {
		return r.Head(ctx)
	}
	return r.opened, nil
}

// branch returns the ref that HEAD is on, which need not be there yet.
func (r *Repo) branch() (plumbing.ReferenceName, error) {
	name, err := r.ask("symbolic-ref", "HEAD")
	if err != nil {
		err = fmt.Errorf("reading HEAD: %w", err)
	}
	return plumbing.ReferenceName(name), err
}

// IsCheckedOut reports whether HEAD is on a ref.
func (r *Repo) IsCheckedOut(ref string) bool {
	head, err := r.branch()
	return err == nil && head.String() == ref
}

// BranchWith returns the branch that is checked out where its history is known to have a
// commit, else "".
func (r *Repo) BranchWith(ctx context.Context, commit string) string {
	head, err := r.branch()
	if err != nil || !head.IsBranch() {
		return "" // no HEAD, or a detached one
	}
	tip, err := r.tip(head)
	if err != nil || tip.IsZero() {
		return ""
	}
	if has, err := r.Descends(ctx, tip.String(), commit); err != nil || !has {
		return ""
	}
	return head.Short()
}

// Tree serves a commit's tree.
func (r *Repo) Tree(_ context.Context, commit string) (fs.FS, error) {
	tree, err := commitTree(r.objects, r.id(commit))
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// TreeID returns the id of a commit's tree.
func (r *Repo) TreeID(_ context.Context, commit string) (string, error) {
	c, err := readCommit(r.objects, r.id(commit))
	if err != nil {
		return "", err
	}
	return c.Tree.String(), nil
}

func commitTree(s source, commit packfile.ID) (*treeFS, error) {
	c, err := readCommit(s, commit)
	if err != nil {
		return nil, err
	}
	root, err := readTree(s, c.Tree)
	if err != nil {
		return nil, fmt.Errorf("reading the tree of commit %s: %w", commit, missing(err))
	}
	return newTreeFS(s, root)
}

// A place is where a repository is: its working tree ("" for a bare one), that
// working tree's own Git directory, and the one that all working trees share; and the commit of HEAD.
type place struct {
	worktree, own, common, head string
	format                      packfile.Format
}

// locate asks git for the repository that dir is in, or a bare one that dir is.
func locate(dir string) (place, error) {
	// In a bare repository git fails at the last question, after it has answered the others; and before that where HEAD has no
	// commit, which it then is not asked for.
	ask := []string{"rev-parse", "--is-inside-work-tree", "--show-object-format", "--path-format=absolute", "--git-dir", "--git-common-dir", "HEAD", "--show-toplevel"}
	said, err := git.Run(context.Background(), dir, ask...)
	lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
	head := ""
	if len(lines) > 4 && packfile.IsID(lines[4]) {
		head = lines[4]
		lines = slices.Delete(lines, 4, 5)
	} else if said != "" {
		said, err = git.Run(context.Background(), dir, slices.DeleteFunc(ask, func(arg string) bool { return arg == "HEAD" })...)
		lines = strings.Split(strings.TrimSuffix(said, "\n"), "\n")
	}
	if said == "" {
		return place{}, openError(dir, err)
	}
	if len(lines) < 4 || len(lines) > 5 || lines[0] == "true" && err != nil {
		return place{}, fmt.Errorf("opening the repository: git rev-parse answered %q", said)
	}
	format, known := packfile.ParseFormat(lines[1])
	if !known {
		return place{}, &UnsupportedError{wire.OtherFormat(lines[1])}
	}
	at := place{format: format, head: head, own: filepath.FromSlash(lines[2]), common: filepath.FromSlash(lines[3])}
	if lines[0] != "true" {
		return at, nil
	}
	at.worktree = filepath.FromSlash(lines[4])
	if filepath.Join(at.worktree, ".git") == at.own {
		return at, nil
	}
	// core.worktree may name any directory, such as a home.
	back, err := git.Run(context.Background(), at.worktree, "rev-parse", "--path-format=absolute", "--git-dir")
	if err != nil || filepath.FromSlash(strings.TrimSuffix(back, "\n")) != at.own {
		return place{}, &UnsupportedError{fmt.Errorf("its core.worktree is %s, which is not a working tree of it", at.worktree)}
	}
	return at, nil
}

// openError is what git's refusal to open the repository of a directory means.
func openError(dir string, err error) error {
	var refused *git.Error
	if !errors.As(err, &refused) {
		return err
	}
	if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
		return ErrNotRepository
	}
	switch said := refused.Said; {
	case strings.HasPrefix(said, "not a git repository (or any"):
		return ErrNotRepository
	case strings.HasPrefix(said, "detected dubious ownership"):
		_, dir, _ := strings.Cut(strings.TrimSuffix(strings.SplitN(said, "\n", 2)[0], "'"), "'")
		command := strings.TrimSpace(said[strings.LastIndex(said, "\n")+1:]) // which git gives
		return fault.Refuse(dir+" belongs to another user, and git does not open it (safe.directory)", command)
	case strings.Contains(said, "repo version"), strings.Contains(said, "repository extension"):
		return &UnsupportedError{refused}
	}
	return fmt.Errorf("opening the repository: %w", err)
}
