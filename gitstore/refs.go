package gitstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

var _ pipeline.Refs = (*Repo)(nil)

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
	if err != nil || tip.IsZero() {
		return "", err
	}
	return tip.String(), nil
}

func refName(name string) (plumbing.ReferenceName, error) {
	ref := plumbing.ReferenceName(name)
	if err := ref.Validate(); err != nil || !strings.HasPrefix(name, "refs/") || strings.Count(name, "/") < 2 {
		return "", &RefError{name, "is not a name for a branch or ref"}
	}
	return ref, nil
}

// BuildCommit writes the commit that changes these files of its parent. Only
// trees on the way to a changed file are read and written; no ref moves.
func (r *Repo) BuildCommit(_ context.Context, parent string, files []patch.Change, c pipeline.Commit) (string, error) {
	id := plumbing.NewHash(parent)
	base, err := readCommit(r.objects, id)
	if err != nil {
		return "", err
	}
	next := commit{base.tree, []plumbing.Hash{id}}
	made, err := r.build(next, files, func(next commit) []byte {
		return encodeCommit(next, identity{c.Author, c.Email}, us, c.When, c.Message)
	})
	if err != nil {
		return "", err
	}
	return made.String(), nil
}

// build writes a commit and all that is new in it. It is given with its
// parent's tree, which the files change.
func (r *Repo) build(c commit, files []patch.Change, encode func(commit) []byte) (plumbing.Hash, error) {
	b := builder{store: r.objects}
	edits, err := b.edits(files)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	c.tree, err = b.tree(c.tree, edits)
	if err == nil && c.tree.IsZero() {
		c.tree, err = b.put(plumbing.TreeObject, nil) // every file is gone
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	made, err := b.put(plumbing.CommitObject, encode(c))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return made, r.objects.Write(&b.batch)
}

// CheckRef refuses a name that is none, and a branch that is checked out, here
// or in a linked working tree, with a *RefError.
func (r *Repo) CheckRef(_ context.Context, name string) error {
	ref, err := refName(name)
	if err != nil {
		return err
	}
	checkedOut, err := r.checkedOut(ref)
	if err == nil && checkedOut {
		err = &RefError{name, "is checked out"}
	}
	return err
}

// MoveRef sets a ref that CheckRef accepts to next if it still is old ("":
// absent), else it returns pipeline.ErrMoved.
func (r *Repo) MoveRef(ctx context.Context, name, old, next string) error {
	if err := r.CheckRef(ctx, name); err != nil {
		return err
	}
	return r.moveRef(plumbing.ReferenceName(name), plumbing.NewHash(old), plumbing.NewHash(next))
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
