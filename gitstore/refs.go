package gitstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

var _ code.Refs = (*Repo)(nil)

// A RefError is a ref that may not be written.
type RefError struct{ Name, Message string }

func (e *RefError) Error() string { return fmt.Sprintf("%+q %s", e.Name, e.Message) }

// Ref returns the commit that a full ref name stands for, "" if there is none.
func (r *Repo) Ref(_ context.Context, name string) (string, error) {
	ref, err := refName(name)
	if err != nil {
		return "", err
	}
	tip, err := r.tip(ref)
	if err != nil { // its file, or one of its directories, may be of another ref
		err = cmp.Or(r.clashes(name), err)
	}
	if err != nil || tip.IsZero() {
		return "", err
	}
	return tip.String(), nil
}

// DefaultBranch returns the branch that a remote's HEAD was on when it was
// cloned or last asked (git remote set-head), "" where the clone does not know.
func (r *Repo) DefaultBranch(remote string) (string, error) {
	head, err := r.git.Reference(plumbing.NewRemoteHEADReferenceName(remote), false)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading HEAD of the remote %s: %w", remote, err)
	}
	branch, _ := strings.CutPrefix(head.Target().String(), "refs/remotes/"+remote+"/")
	if head.Type() != plumbing.SymbolicReference || branch == head.Target().String() {
		return "", nil
	}
	return branch, nil
}

func refName(name string) (plumbing.ReferenceName, error) {
	ref := plumbing.ReferenceName(name)
	if err := ref.Validate(); err != nil || !strings.HasPrefix(name, "refs/") || strings.Count(name, "/") < 2 {
		return "", &RefError{name, "is not a name for a branch or ref"}
	}
	return ref, nil
}

// BuildCommit writes the commit that changes these files of its parent. Only
// trees on the way to a changed file are read and written; no ref moves, and
// until one does, or Close, `git gc` leaves the commit alone.
func (r *Repo) BuildCommit(_ context.Context, parent string, files []patch.Change, c code.Commit) (string, error) {
	id := plumbing.NewHash(parent)
	base, err := readCommit(r.objects, id)
	if err != nil {
		return "", err
	}
	next := commit{base.tree, []plumbing.Hash{id}}
	b := builder{r.objects, &packfile.Batch{}}
	made, err := b.commit(next, files, func(next commit) ([]byte, error) {
		committer := identity{us.name, cmp.Or(c.Committer, us.email)}
		return signed(encodeCommit(next, identity{c.Author, c.Email}, committer, c.When, c.Message), c.Sign)
	})
	if err != nil {
		return "", err
	}
	pack, err := writePack(r.objects, b.batch)
	if err != nil {
		return "", err
	}
	r.objects.Release(r.built[made].name)
	r.built[made] = pack
	return made.String(), nil
}

// placed lets go of a commit that was built: a ref leads to it now.
func (r *Repo) placed(commit plumbing.Hash) {
	r.objects.Release(r.built[commit].name)
	delete(r.built, commit)
}

// CheckRef refuses a name that is none, one that Git would not let be beside
// those that there are, and a branch that is checked out, here or in a linked
// working tree, with a *RefError.
func (r *Repo) CheckRef(_ context.Context, name string) error {
	ref, err := refName(name)
	if err != nil {
		return err
	}
	checkedOut, err := r.checkedOut(ref)
	if err == nil && checkedOut {
		err = &RefError{name, "is checked out"}
	}
	if _, exists := r.git.Storer.Reference(ref); err == nil && exists != nil {
		err = r.clashes(name)
	}
	return err
}

// clashes refuses a new ref that is a directory of another, or below one: they
// cannot both be files.
func (r *Repo) clashes(name string) error {
	packed, err := os.ReadFile(filepath.Join(r.gitDir, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := path.Dir(name); strings.Contains(dir, "/"); dir = path.Dir(dir) {
		info, err := os.Stat(r.refFile(plumbing.ReferenceName(dir)))
		if err == nil && info.Mode().IsRegular() || bytes.Contains(packed, []byte(" "+dir+"\n")) {
			return &RefError{name, "cannot be beside " + dir}
		}
	}
	if bytes.Contains(packed, []byte(" "+name+"/")) {
		return &RefError{name, "cannot be beside those below it"}
	}
	return filepath.WalkDir(r.refFile(plumbing.ReferenceName(name)), func(_ string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return nil
		case err == nil && !d.IsDir() && !strings.HasSuffix(d.Name(), ".lock"):
			err = &RefError{name, "cannot be beside those below it"}
		}
		return err
	})
}

// MoveRef sets a ref that CheckRef accepts to next if it still is old ("":
// absent), else it returns ledger.ErrMoved.
func (r *Repo) MoveRef(ctx context.Context, name, old, next string) error {
	if err := r.CheckRef(ctx, name); err != nil {
		return err
	}
	if err := r.gitCounts(plumbing.NewHash(next)); err != nil {
		return err
	}
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	commit := plumbing.NewHash(next)
	if pack, built := r.built[commit]; built {
		if err := r.notePacks(pack); err != nil {
			return err
		}
	}
	if err := r.moveRef(plumbing.ReferenceName(name), plumbing.NewHash(old), commit); err != nil {
		return err
	}
	r.placed(commit)
	return nil
}

// gitCounts refuses a commit on one that only Fetch has brought to a shallow or
// partial clone: git would find the ref broken.
func (r *Repo) gitCounts(commit plumbing.Hash) error {
	if _, err := os.Stat(r.ownObjects()); err != nil {
		return nil
	}
	c, err := readCommit(r.objects, commit)
	if err != nil {
		return err
	}
	git, err := packfile.Open(r.gitObjects())
	if err != nil {
		return err
	}
	for _, parent := range c.parents {
		if _, _, err = git.Size(parent); errors.Is(err, packfile.ErrMissing) {
			err = &UnsupportedError{fmt.Errorf("the clone is shallow or partial, and git has no commit %s in it; \"git fetch --unshallow\" brings all", parent)}
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, git.Close())
}

// checkedOut looks at HEAD and at the HEAD of every linked working tree
// (gitrepository-layout(5), worktrees/<id>/HEAD).
func (r *Repo) checkedOut(name plumbing.ReferenceName) (bool, error) {
	heads, err := filepath.Glob(filepath.Join(r.gitDir, "worktrees", "*", "HEAD"))
	if err != nil {
		return false, err
	}
	for _, file := range append(heads, filepath.Join(r.gitDir, "HEAD")) {
		data, err := os.ReadFile(file)
		if err != nil {
			return false, fmt.Errorf("reading %s: %w", file, err)
		}
		if strings.TrimSpace(string(data)) == "ref: "+name.String() {
			return true, nil
		}
	}
	return false, nil
}
