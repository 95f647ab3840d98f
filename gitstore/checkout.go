package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

var _ code.Checkout = (*Repo)(nil)

// Branch returns the full name of the branch that HEAD is on, or a *code.UncommittableError
// where HEAD is on none or something is under way that ends with a commit, or an index, of its own.
func (r *Repo) Branch(context.Context) (string, error) {
	for _, name := range []string{"MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "index.lock"} {
		_, err := os.Lstat(filepath.Join(r.ownDir, name))
		if strings.HasSuffix(name, "_HEAD") && errors.Is(err, fs.ErrNotExist) { // with reftable, some of these have no file
			if _, noRef := r.ask("show-ref", "--verify", "--quiet", name); !git.IsNo(noRef) { // and no tag or branch of that name
				err = noRef
			}
		}
		if err == nil {
			err = &code.UncommittableError{Why: "a merge, a rebase or another command of git is under way (" + name + ")", Hint: "git status"}
			if name == "index.lock" {
				err = &code.UncommittableError{Why: "another git is at work here, or was cut off: index.lock is there", Lock: filepath.Join(r.ownDir, name)}
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	branch, err := r.branch()
	if err == nil && branch.IsBranch() {
		return branch.String(), nil
	}
	head, headErr := r.ask("rev-parse", "--verify", "--quiet", "HEAD")
	if headErr != nil {
		return "", cmp.Or(err, headErr)
	}
	return "", &code.UncommittableError{Why: "HEAD is on no branch", Hint: fmt.Sprintf("git switch -c at-%.7s", head)}
}

// MoveBranch is MoveRef for the branch that is checked out.
func (r *Repo) MoveBranch(ctx context.Context, branch, old, next string) error {
	if !r.IsCheckedOut(branch) {
		return writing.ErrMoved
	}
	tip, err := r.Ref(ctx, branch)
	if err != nil || tip == next {
		return err
	}
	return r.moveTo(branch, old, next)
}

// Stage has git write the index entries of these files alone. As it does it looks into other files
// that may have changed since it did last, and would run their filters.
func (r *Repo) Stage(ctx context.Context, files []patch.Change) error {
	var info strings.Builder
	for _, f := range files {
		if f.After == nil {
			fmt.Fprintf(&info, "0 %s 0\t%s\x00", r.objects.Format.Hex(packfile.None), f.Path)
		} else {
			fmt.Fprintf(&info, "%06o %s 0\t%s\x00", uint32(f.After.Mode), r.blobID(f.After), f.Path)
		}
	}
	c, err := git.Command{Dir: r.worktree, Args: []string{"update-index", "-z", "--index-info"}, Stdin: strings.NewReader(info.String())}.WithoutPrograms(ctx)
	if err == nil {
		_, err = c.Output(ctx)
	}
	if err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	return nil
}
