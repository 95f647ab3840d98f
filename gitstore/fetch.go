package gitstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// fetchLimit is how many bytes a pack may have that Fetch asks for.
var fetchLimit int64 = 1 << 30 // tests do not send as much

// A NoRefError is a ref that a remote does not have.
type NoRefError struct{ Ref, Remote string }

func (e *NoRefError) Error() string { return fmt.Sprintf("%s has no %+q", e.Remote, e.Ref) }

// Fetch brings the commit that a remote's ref, or HEAD, names, with all that it needs and
// the clone lacks, and returns its id. Nothing of what came is executed or
// checked out. What came is complete and has the names that its content has, or
// it is not kept.
//
// In a clone that has its whole history, objects go where git has its own, and
// a ref of ours below refs/countersign/ keeps them. A shallow or partial clone
// stays as git knows it: what it lacks goes to a directory of ours, all commits
// and, of the ref's commit, all files (FetchMergeBase brings those of another).
//
// A remote without the ref is a *NoRefError, more bytes than the limit
// wire.ErrTooLarge.
//
// Without history, a shallow or partial clone gets nothing of what came before the
// commit: for who needs the commit's files alone.
func (r *Repo) Fetch(ctx context.Context, s *wire.Server, ref string, history bool) (string, error) {
	tip, err := r.fetch(ctx, s, ref, history)
	if err == nil && tip.IsZero() {
		err = &NoRefError{ref, s.String()}
	}
	return hexOf(tip), err
}

// fetch is Fetch, with zero for a ref that is not there. A ref may move between
// two questions, and a server then has nothing under the old name.
func (r *Repo) fetch(ctx context.Context, s *wire.Server, ref string, history bool) (packfile.ID, error) {
	if _, err := refName(ref); err != nil && ref != "HEAD" {
		return packfile.None, err
	}
	r.fetching.Lock()
	defer r.fetching.Unlock()
	var before packfile.ID
	var failed error
	for range 3 {
		tip, err := s.Tip(ctx, ref)
		if err != nil || tip.IsZero() {
			return packfile.None, err
		}
		if tip == before {
			break
		}
		if failed = r.bring(ctx, s, ref, tip, history); failed == nil {
			return tip, nil
		}
		if unreachable(failed) || errors.Is(failed, wire.ErrTooLarge) {
			break
		}
		before = tip
	}
	return packfile.None, failed
}

// bring gets what a commit needs, and keeps it.
func (r *Repo) bring(ctx context.Context, s *wire.Server, ref string, tip packfile.ID, history bool) error {
	if slices.Contains(r.brought, tip) {
		return nil
	}
	clone, err := r.lacks()
	switch {
	case err != nil:
	case clone.nothing():
		err = r.bringWhole(ctx, s, ref, tip)
	default:
		err = r.bringApart(ctx, s, clone, tip, history)
	}
	if err == nil && (history || clone.nothing()) {
		r.brought = append(r.brought, tip)
	}
	return err
}

// bringWhole is for a clone of which git says that all is there that a ref
// leads to.
func (r *Repo) bringWhole(ctx context.Context, s *wire.Server, ref string, tip packfile.ID) error {
	ours := keptRef(s, ref)
	now, err := r.tip(ours)
	if err != nil || now == tip {
		return err
	}
	tips, err := r.tips()
	if err != nil {
		return err
	}
	within, err := r.within(ctx, tips, tip)
	if err == nil && !within {
		held, err := fetchPack(ctx, s, wire.FetchRequest{Wants: []packfile.ID{tip}, Haves: tips, Limit: fetchLimit}, r.objects, true)
		if err != nil {
			return err
		}
		defer held.Release()
		if _, err := readCommit(r.objects, tip); err != nil { // it is a tag
			packfile.Remove([]string{string(held)})
			return err
		}
	}
	if err != nil {
		return err
	}
	return r.keep(ours, now, tip)
}

// fetchPack gets a pack and adds it to objects. If it has to be whole, nothing of what its first commit leads to may lack.
func fetchPack(ctx context.Context, s *wire.Server, req wire.FetchRequest, to *git.Objects, whole bool) (held packfile.Held, err error) {
	pack, err := s.Fetch(ctx, req)
	if err != nil {
		return "", err
	}
	if whole {
		held, err = to.IndexWhole(ctx, bytes.NewReader(pack), req.Wants[0], req.Haves)
	} else {
		held, err = to.Index(ctx, bytes.NewReader(pack))
	}
	if err != nil {
		err = fmt.Errorf("fetching from %s: %w", s, err)
	}
	return held, err
}

func (r *Repo) has(id packfile.ID) bool {
	_, _, err := r.objects.Size(id)
	return err == nil
}

var pullRequest = canon.Regexp(`^refs/pull/[1-9][0-9]{0,9}/(head|merge)$`)

// keptRef is the ref of ours that keeps what a remote's ref names. Only a pull
// request's number is taken over: other names are the forge's, and may differ
// in letters that a file system takes for the same, or be above each other.
func keptRef(s *wire.Server, ref string) plumbing.ReferenceName {
	const ours = "refs/countersign/"
	if pullRequest().MatchString(ref) {
		return plumbing.ReferenceName(ours + ref[len("refs/"):])
	}
	return plumbing.ReferenceName(ours + "ref/" + shortName(s.String(), ref))
}

// keep makes a ref of ours name a commit, whatever it named before, which probably was old.
func (r *Repo) keep(name plumbing.ReferenceName, old, commit packfile.ID) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err = r.moveRef(name, old, commit); errors.Is(err, writing.ErrMoved) {
		if old, err = r.tip(name); err == nil {
			err = r.moveRef(name, old, commit)
		}
	}
	if errors.Is(err, writing.ErrMoved) { // by git itself
		err = fmt.Errorf("keeping %s: %s is being moved by another program", commit, name)
	}
	return err
}

const submodule = filemode.Submodule

// maxHaves bounds what a server is told of that is here.
const maxHaves = 256

// tips are commits that refs lead to, HEAD first with those before it: a
// server knows some of them, and sends what these do not lead to.
func (r *Repo) tips() ([]packfile.ID, error) {
	var out []packfile.ID
	if head, err := r.ask("rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
		if out, err = haves(r.objects, r.id(head)); err != nil {
			return nil, err
		}
	}
	refs, err := r.refs("refs")
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		id := refs[name].id
		if len(out) >= maxHaves || slices.Contains(out, id) {
			continue
		}
		if kind, _, err := r.objects.Size(id); err == nil && kind == plumbing.CommitObject {
			out = append(out, id)
		}
	}
	return out, err
}

// within reports whether a commit is one of tips or before one. If so, git sees to it that all of it is here.
func (r *Repo) within(ctx context.Context, tips []packfile.ID, commit packfile.ID) (bool, error) {
	if !r.has(commit) {
		return false, nil
	}
	args := []string{"rev-list", "--max-count=1", commit.String(), "--not"}
	for _, tip := range tips {
		args = append(args, tip.String())
	}
	out, cut, err := r.history(ctx, args...)
	return err == nil && cut == "" && out == "", cutIsNil(err)
}

// wholeHistory reports whether a commit and all before it are here.
func (r *Repo) wholeHistory(ctx context.Context, commit packfile.ID) (bool, error) {
	if !r.has(commit) {
		return false, nil
	}
	_, cut, err := r.history(ctx, "rev-list", "--count", commit.String())
	return err == nil && cut == "", cutIsNil(err)
}

func cutIsNil(err error) error {
	if is[*CutOffError](err) {
		return nil
	}
	return err
}

// absentFiles returns the files of a commit that are not here; a directory that
// is not is packfile.ErrMissing. What is in known, the tree of a commit that is
// all here, is not looked at again.
func (r *Repo) absentFiles(commit, known packfile.ID) (files []packfile.ID, err error) {
	c, err := readCommit(r.objects, commit)
	if err != nil {
		return nil, err
	}
	seen := map[packfile.ID]bool{}
	err = diffTrees(r.objects, known, c.Tree, func(d treeChange) error {
		if d.new.id.IsZero() || d.new.mode == submodule || seen[d.new.id] {
			return fs.SkipDir
		}
		seen[d.new.id] = true
		if d.new.mode == filemode.Dir {
			return nil
		}
		_, _, err := r.objects.Size(d.new.id)
		if errors.Is(err, packfile.ErrMissing) {
			files, err = append(files, d.new.id), nil
		}
		return cmp.Or(err, fs.SkipDir)
	})
	return files, err
}

// wholeTree reports whether all files of a commit are here.
func (r *Repo) wholeTree(commit, known packfile.ID) (bool, error) {
	files, err := r.absentFiles(commit, known)
	return err == nil && len(files) == 0, missingIsNil(err)
}
