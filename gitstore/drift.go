package gitstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// Drift returns how many commits only one of two commits leads to, as "git
// rev-list --count a...b" does, and the paths of the files in which their trees
// differ. A history or a tree that is not here as far as it takes is an error:
// of a history, a *CutOffError. Where clocks were wrong, commits of both may be
// counted as well, and none is left out.
func (r *Repo) Drift(_ context.Context, a, b string) (commits int, files []string, err error) {
	fail := func(err error) (int, []string, error) {
		return 0, nil, fmt.Errorf("comparing %s with %s: %w", a, b, err)
	}
	if commits, err = apart(r.objects, plumbing.NewHash(a), plumbing.NewHash(b)); err != nil {
		return fail(err)
	}
	var trees [2]plumbing.Hash
	for i, id := range []string{a, b} {
		c, err := readCommit(r.objects, plumbing.NewHash(id))
		if errors.Is(err, packfile.ErrMissing) {
			err = &CutOffError{id}
		}
		if err != nil {
			return fail(err)
		}
		trees[i] = c.Tree
	}
	paths := 0
	err = diffTrees(r.objects, trees[0], trees[1], func(c treeChange) error {
		if paths++; paths > maxDiffPaths {
			return fmt.Errorf("more than %d files and directories differ", maxDiffPaths)
		}
		if isFile(c.old) || isFile(c.new) {
			files = append(files, c.path)
		}
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return commits, files, nil
}

// isFile is true of links and submodules too, and of what has no mode that git knows.
func isFile(e treeEntry) bool { return e != (treeEntry{}) && e.mode != filemode.Dir }

// apart counts the commits that are before, or are, one of two and not the other.
func apart(s source, a, b plumbing.Hash) (int, error) {
	p, err := paint(s, a, b)
	if err != nil {
		return 0, err
	}
	one := func(n *ancestor) bool { return n.paint&(ofOne|ofOthers) != ofOne|ofOthers }
	oldest, found := int64(0), false
	for _, n := range p.nodes {
		if one(n) && !n.gone && (!found || n.when < oldest) {
			oldest, found = n.when, true
		}
	}
	// What is left in the queue is before both, and so is what is before that:
	// of commits of one second, or with a wrong clock, that may have been painted
	// from one side alone.
	for found && len(p.queue) > 0 && p.queue[0].when >= oldest {
		if err := p.step(); err != nil {
			return 0, err
		}
	}
	count := 0
	for id, n := range p.nodes {
		switch {
		case one(n) && n.gone:
			return 0, &CutOffError{id.String()}
		case one(n):
			count++
		}
	}
	return count, nil
}
