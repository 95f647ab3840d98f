package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/pipeline/code"
)

// A Scratch is a commit's files in a directory that an untrusted program has for itself (T93). It is the
// repository whose HEAD is that commit and whose working tree is that directory. What the program left there
// as .git has no part in it: HEAD and index are in a Git directory of the scratch's own, elsewhere.
type Scratch struct {
	*Repo
	Base   string // the commit
	gitDir string
	dir    string
}

var _ code.Repository = (*Scratch)(nil)

// Scratch returns the scratch in dir that MakeScratch made.
func (r *Repo) Scratch(base, gitDir, dir string) *Scratch { return &Scratch{r, base, gitDir, dir} }

// scratchBranch is where HEAD is, where the repository's own is on no branch.
const scratchBranch = "refs/heads/main"

// MakeScratch makes the Git directory, which must be missing, and in dir, which is empty, the commit's files and a
// repository for the program: it borrows all objects of this one, and has refs and an index of its own.
func (r *Repo) MakeScratch(ctx context.Context, base, gitDir, dir string) (*Scratch, error) {
	s := r.Scratch(base, gitDir, dir)
	head, err := r.branch()
	if err != nil || !head.IsBranch() {
		head = scratchBranch
	}
	v := View{Head: head.String(), Refs: map[string]string{head.String(): base}}
	programs := filepath.Join(dir, ".git")
	settings := [][2]string{{"core.bare", "false"}, {"user.name", r.Config.Name}, {"user.email", r.Config.Email}}
	for _, at := range []string{gitDir, programs} {
		if err == nil {
			err = os.Mkdir(at, 0o700)
		}
		if err == nil {
			err = r.View(at, v)
		}
		if err == nil {
			_, err = s.command(at, "read-tree", "HEAD").Set("core.sparseCheckout", "false").Output(ctx)
		}
	}
	for _, set := range settings {
		if err == nil && set[1] != "" {
			_, err = s.command(programs, "config", "--", set[0], set[1]).Output(ctx)
		}
	}
	if err == nil {
		err = s.checkOut(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("making the scratch tree: %w", err)
	}
	return s, nil
}

// checkOut writes the files with the commit's bytes: what the commit or the user says of attributes converts none, and runs no filter.
func (s *Scratch) checkOut(ctx context.Context) error {
	attributes := filepath.Join(s.gitDir, "info", "attributes") // stands above all others (gitattributes(5))
	err := os.MkdirAll(filepath.Dir(attributes), 0o700)
	if err == nil {
		err = os.WriteFile(attributes, []byte("* -text !eol -ident -filter !working-tree-encoding\n"), 0o600)
	}
	if err == nil {
		_, err = s.command(s.gitDir, "checkout-index", "--all").Set("core.symlinks", "true").Output(ctx)
	}
	return errors.Join(err, os.RemoveAll(attributes))
}

// command is a command of git on the files, with a Git directory that git is not to look for.
func (s *Scratch) command(gitDir string, args ...string) git.Command {
	return git.Command{Dir: s.dir, Args: args, Env: []string{"GIT_DIR=" + gitDir, "GIT_WORK_TREE=" + s.dir}}
}

// Head is the commit, wherever the repository's own HEAD is by now.
func (s *Scratch) Head(context.Context) (string, error) { return s.Base, nil }

// Changed is Changed of a Repo. Git reads every file: no time stamp tells that one has not changed.
func (s *Scratch) Changed(ctx context.Context) ([]string, error) {
	return changed(ctx, s.command(s.gitDir).Set("core.fileMode", "true").Set("core.symlinks", "true"))
}

// ObjectDirs are the directories that the repository's objects are read from.
func (r *Repo) ObjectDirs(ctx context.Context) ([]string, error) { return r.objects.Dirs(ctx) }
