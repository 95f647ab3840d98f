package gitstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

const submodule = filemode.Submodule

// maxHaves bounds what a server is told of that is here.
const maxHaves = 256

// tips are commits that refs lead to, HEAD first with those before it: a
// server knows some of them, and sends what these do not lead to.
func (r *Repo) tips() ([]plumbing.Hash, error) {
	var out []plumbing.Hash
	if head, err := r.git.Head(); err == nil {
		if out, err = haves(r.objects, head.Hash()); err != nil {
			return nil, err
		}
	}
	refs, err := r.refsBelow("refs")
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		id := refs[name]
		if len(out) >= maxHaves || slices.Contains(out, id) {
			continue
		}
		if kind, _, err := r.objects.Size(id); err == nil && kind == plumbing.CommitObject {
			out = append(out, id)
		}
	}
	return out, err
}

// What it takes to call a commit an old one: the clocks of those who commit
// differ, and a history may be long.
const (
	slack     = 7 * 24 * 60 * 60
	maxWithin = 200_000
)

// within reports whether a commit is one of tips or before one, as far as commits
// that are not older tell. If so, git sees to it that all of it is here.
func (r *Repo) within(tips []plumbing.Hash, commit plumbing.Hash) (bool, error) {
	o, err := r.objects.View(commit)
	if err != nil {
		return false, missingIsNil(err)
	}
	since := committedAt(o.Data) - slack
	seen := map[plumbing.Hash]bool{}
	for queue := slices.Clone(tips); len(queue) > 0 && len(seen) < maxWithin; queue = queue[1:] {
		if queue[0] == commit {
			return true, nil
		}
		if seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		o, err := r.objects.View(queue[0])
		if err != nil {
			return false, err
		}
		c, err := parseCommit(o.Data)
		if err != nil {
			return false, fmt.Errorf("commit %s: %w", queue[0], err)
		}
		if committedAt(o.Data) >= since {
			queue = append(queue, c.parents...)
		}
	}
	return false, nil
}

// wholeHistory reports whether a commit and all before it are here.
func (r *Repo) wholeHistory(commit plumbing.Hash) (bool, error) {
	err := r.reach(commit, map[plumbing.Hash]bool{}, func(plumbing.Hash, []byte) {})
	return err == nil, missingIsNil(err)
}

// absent is what a tree has that is not here.
type absent struct {
	r     *Repo
	seen  map[plumbing.Hash]bool
	files []plumbing.Hash
}

// absentFiles returns the files of a commit that are not here; a directory that
// is not is packfile.ErrMissing. What is in known, the tree of a commit that is
// all here, is not looked at again.
func (r *Repo) absentFiles(commit, known plumbing.Hash) ([]plumbing.Hash, error) {
	c, err := readCommit(r.objects, commit)
	if err != nil {
		return nil, err
	}
	a := absent{r: r, seen: map[plumbing.Hash]bool{}}
	err = a.tree(c.tree, known)
	return a.files, err
}

// wholeTree reports whether all files of a commit are here.
func (r *Repo) wholeTree(commit, known plumbing.Hash) (bool, error) {
	files, err := r.absentFiles(commit, known)
	return err == nil && len(files) == 0, missingIsNil(err)
}

func (a *absent) tree(id, known plumbing.Hash) error {
	if id == known || a.seen[id] {
		return nil
	}
	a.seen[id] = true
	entries, err := readTree(a.r.objects, id)
	if err != nil {
		return err
	}
	before := map[string]treeEntry{}
	if !known.IsZero() {
		old, err := readTree(a.r.objects, known)
		if err != nil {
			return err
		}
		for _, e := range old {
			before[e.name] = e
		}
	}
	for _, e := range entries {
		if err := a.entry(e, before[e.name]); err != nil {
			return err
		}
	}
	return nil
}

func (a *absent) entry(e, known treeEntry) error {
	switch {
	case e == known, e.mode == submodule:
		return nil
	case e.mode == filemode.Dir && known.mode == filemode.Dir:
		return a.tree(e.id, known.id)
	case e.mode == filemode.Dir:
		return a.tree(e.id, plumbing.ZeroHash)
	case !a.seen[e.id]:
		a.seen[e.id] = true
		_, _, err := a.r.objects.Size(e.id)
		if !errors.Is(err, packfile.ErrMissing) {
			return err
		}
		a.files = append(a.files, e.id)
	}
	return nil
}
