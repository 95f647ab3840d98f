// Package agent runs a program that nobody trusts in a scratch tree: a copy of a commit's files, in a directory of its
// own below the user's cache. It holds the program there by the sandbox, and reads what the program has changed (T93).
//
// A scratch tree is a directory with these files, of which the program sees its tree, and its home where the sandbox
// shows it one:
//
//	tree/       what the program changes; its .git is the program's own
//	git/        HEAD and index, which tell what it has changed
//	home/, tmp/ the program's home and temporary files while it runs, made anew each time
//	began       is as old as that
//	channel/    the socket by which it asks that its change be proposed, while it runs
//	state.json  what is run there, on which commit, and what was proposed
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// A State is what is kept of a scratch tree.
type State struct {
	Base        string   `json:"base"` // the commit
	Command     []string `json:"command"`
	Profile     string   `json:"profile"`
	WithChanges bool     `json:"with_changes"` // whether it began with what was not committed
	Transaction string   `json:"transaction"`  // that was proposed last
	Found       bool     `json:"found"`        // whether that was open before, and is somebody else's
}

// A Tree is a scratch tree.
type Tree struct {
	State
	Name string
	dir  string
	repo *gitstore.Repo
	work *workspace.Tree
}

// Parent is the directory of a repository's scratch trees, below the user's cache.
func Parent(repo *gitstore.Repo, getenv func(string) string) (string, error) {
	cache := getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", fault.Refuse("there is no place for the scratch tree: neither XDG_CACHE_HOME nor HOME names a directory", "export XDG_CACHE_HOME=DIR")
		}
		cache = filepath.Join(home, ".cache")
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	cache, err := filepath.EvalSymlinks(cache)
	return filepath.Join(cache, "countersign", "agents", canon.Hex([]byte(repo.Dir()))[:16]), err
}

// prefix is what the names of scratch trees begin with.
const prefix = "agent-"

// Make makes a scratch tree in parent, with the commit's files and, on them, with changes.
func Make(ctx context.Context, repo *gitstore.Repo, parent string, s State, changes []patch.Change) (t *Tree, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	t = &Tree{State: s, Name: filepath.Base(dir), dir: dir, repo: repo}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Remove())
		}
	}()
	err = os.Mkdir(t.Dir(), treeMode)
	if err == nil {
		_, err = repo.MakeScratch(ctx, s.Base, t.git(), t.Dir())
	}
	if err == nil {
		err = t.open()
	}
	if err != nil {
		return nil, err
	}
	for _, op := range t.work.Write(changes) {
		if op.Status != ledger.StatusSuccess {
			return nil, fmt.Errorf("copying what is not committed: %s: %s", patch.Quote(op.Path), op.Error)
		}
	}
	return t, t.Save()
}

// Find returns the scratch tree of a name, or the only one that there is.
func Find(repo *gitstore.Repo, parent, name string) (*Tree, error) {
	if name == "" {
		entries, err := os.ReadDir(parent)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		var names []string
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
				names = append(names, e.Name())
			}
		}
		switch len(names) {
		case 0:
			return nil, fault.Refuse("this repository has no scratch tree", "countersign agent -- COMMAND")
		case 1:
			name = names[0]
		default:
			return nil, fault.Refuse("this repository has several scratch trees: "+strings.Join(names, ", "), "countersign agent --resume "+names[len(names)-1])
		}
	}
	t := &Tree{Name: name, dir: filepath.Join(parent, name), repo: repo}
	if filepath.Base(name) != name || !strings.HasPrefix(name, prefix) {
		return nil, fault.Refuse(fmt.Sprintf("%+q is not the name of a scratch tree", name), "countersign agent --resume")
	}
	raw, err := os.ReadFile(filepath.Join(t.dir, "state.json"))
	switch _, missing := os.Stat(t.dir); {
	case missing != nil:
		return nil, fault.Refuse(fmt.Sprintf("there is no scratch tree %+q", name), "ls "+parent)
	case errors.Is(err, fs.ErrNotExist): // whoever made it was killed: the state is the last of it
		err = os.MkdirAll(t.Dir(), treeMode)
	case err == nil:
		err = json.Unmarshal(raw, &t.State)
	}
	if err == nil {
		err = t.open()
	}
	return t, err
}

func (t *Tree) open() (err error) {
	if err := os.Chmod(t.Dir(), treeMode); err != nil {
		return err
	}
	t.work, err = workspace.Open(t.Dir(), t.dir, false)
	return err
}

// treeMode is the mode of the directory that the program changes, whatever it made of it.
const treeMode = 0o755

// Dir is the directory that the program changes.
func (t *Tree) Dir() string { return filepath.Join(t.dir, "tree") }

func (t *Tree) git() string { return filepath.Join(t.dir, "git") }

// Lock waits until nobody else runs anything there.
func (t *Tree) Lock(ctx context.Context) (unlock func(), err error) { return t.work.Lock(ctx) }

// Save keeps the state.
func (t *Tree) Save() error {
	raw, err := json.Marshal(t.State)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(t.dir, "state.json"), append(raw, '\n'))
}

// Proposed keeps which transaction proposes what the files are, and whether it was there before they were proposed.
func (t *Tree) Proposed(id string, found bool) error {
	if id != t.Transaction {
		t.Transaction, t.Found = id, found
	}
	return t.Save()
}

// Tidy deletes the program's home and temporary files.
func (t *Tree) Tidy() error {
	return errors.Join(sandbox.RemoveAll(t.home()), sandbox.RemoveAll(t.temp()))
}

func (t *Tree) home() string { return filepath.Join(t.dir, "home") }

func (t *Tree) temp() string { return filepath.Join(t.dir, "tmp") }

// Remove deletes the scratch tree, whatever the program made of it.
func (t *Tree) Remove() error { return sandbox.RemoveAll(t.dir) }

// Change is what the files have beyond the commit, of at most so many bytes. What changes
// nothing is a patch.ErrUnchanged.
func (t *Tree) Change(ctx context.Context, most int64, summary string) (input.Change, error) {
	if err := t.makeReadable(); err != nil {
		return input.Change{}, err
	}
	scratch := t.repo.Scratch(t.Base, t.git(), t.Dir())
	changed, read, err := effect.Files{Tree: t.work, Repo: scratch}.Changed(ctx)
	if err != nil {
		return input.Change{}, err
	}
	base, err := scratch.Tree(ctx, t.Base)
	if err != nil {
		return input.Change{}, err
	}
	in := input.Worktree(changed, read, most, summary)
	set, err := in.Resolve(base)
	if err == nil && !t.WithChanges { // then the person's own files are as the commit has them, or are in the way
		in, err = input.One(set.Bytes(), true, summary)
	}
	in.Base = t.Base
	return in, err
}

// readByGit are files that Git reads whatever they are, and whether it follows a link there. It would wait for ever for who writes
// into a pipe.
var readByGit = map[string]bool{".gitignore": false, ".gitattributes": false, ".gitmodules": true}

// makeReadable opens the directories that the program has closed, of which Git would take the files for unchanged, and refuses what
// nobody can read to its end.
func (t *Tree) makeReadable() error {
	err := os.Chmod(t.Dir(), treeMode)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		follows, read := readByGit[d.Name()]
		switch kind := d.Type(); {
		case name == ".git" && d.IsDir():
			return fs.SkipDir
		case read && !kind.IsRegular() && !d.IsDir() && (follows || kind != fs.ModeSymlink):
			return fault.Refuse(fmt.Sprintf("nothing of the scratch tree can be proposed: %s is no file", patch.Quote(name)), "rm "+filepath.Join(t.Dir(), name))
		case !d.IsDir():
			return nil
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o700 != 0o700 {
			err = root.Chmod(name, info.Mode().Perm()|0o700)
		}
		return err
	})
}

// Nested is a directory below the tree that the program made a repository of its own, "" for none: to Git nothing of it is
// part of the tree.
func (t *Tree) Nested() (dir string) {
	_ = filepath.WalkDir(t.Dir(), func(name string, d fs.DirEntry, err error) error {
		switch above := filepath.Dir(name); {
		case err != nil || d.Name() != ".git":
			return nil
		case above != t.Dir():
			dir, _ = filepath.Rel(t.Dir(), above)
			return fs.SkipAll
		case d.IsDir():
			return fs.SkipDir
		}
		return nil
	})
	return dir
}

// deniedFile tells the program why its last change was denied. Git takes it for no part of the tree.
const deniedFile = ".git/DENIED"

// NoteDenial writes the reason where the program finds it. The program can have made anything of the directory: nothing
// outside is reached.
func (t *Tree) NoteDenial(reason string) error {
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir(filepath.Dir(deniedFile), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := root.Remove(deniedFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(deniedFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(reason + "\n")
	return errors.Join(err, f.Close())
}
