package gitstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
)

func (r *Repo) gitObjects() string { return filepath.Join(r.gitDir, "objects") }

// ownObjects is where objects go that git must not count on: what they need may
// not be here. It is a cache, and may be removed at any time.
func (r *Repo) ownObjects() string { return filepath.Join(r.stateDir(), "objects") }

// lacking is how a clone has less than its refs lead to.
type lacking struct {
	before  []packfile.ID // commits whose parents are not here (.git/shallow)
	partial bool          // files that were not needed are not here
}

func (l lacking) nothing() bool { return len(l.before) == 0 && !l.partial }

// lacks reads what git knows to be not here.
func (r *Repo) lacks() (lacking, error) {
	shallow, err := idsIn(filepath.Join(r.gitDir, "shallow"))
	if err != nil {
		return lacking{}, err
	}
	l := lacking{before: slices.Collect(maps.Keys(shallow))}
	l.partial, err = r.partial()
	return l, err
}

// isPartial asks git's configuration whether files that were not needed are not here.
func (r *Repo) isPartial() (bool, error) {
	r.mu.Lock()
	said, err := r.said, error(nil)
	r.mu.Unlock()
	if said == nil {
		said, err = r.command().Config(context.Background())
	}
	return slices.ContainsFunc(said, func(one git.Setting) bool {
		promisor := strings.HasPrefix(one.Key, "remote.") && strings.HasSuffix(one.Key, ".promisor") && git.IsTrue(one.Value)
		return promisor || one.Key == "extensions.partialclone" && one.Value != ""
	}), err
}

// bringApart is for a shallow or partial clone: the files of one commit and, where
// history is asked for, all commits before it.
func (r *Repo) bringApart(ctx context.Context, s *wire.Server, clone lacking, tip packfile.ID, history bool) error {
	own, err := r.openOwn()
	if err != nil {
		return err
	}
	if history {
		whole, err := r.wholeHistory(ctx, tip)
		if err == nil && !whole {
			err = r.bringHistory(ctx, s, own, tip)
		}
		if err != nil {
			return err
		}
	}
	return r.bringFiles(ctx, s, own, clone, tip, tip)
}

// openOwn opens our own objects, and has git look whether they are there.
func (r *Repo) openOwn() (*git.Objects, error) {
	own, err := openObjects(r.ownObjects(), r.objects.Format)
	if err != nil {
		return nil, fmt.Errorf("opening the fetched objects: %w", err)
	}
	r.objects.Restart()
	return own, nil
}

// bringHistory gets the commits alone where the server can do that.
func (r *Repo) bringHistory(ctx context.Context, s *wire.Server, own *git.Objects, tip packfile.ID) error {
	req := wire.FetchRequest{Wants: []packfile.ID{tip}, Haves: r.brought}
	if s.CanFilter() {
		req.Filter = "tree:0"
	}
	if err := r.bringTo(ctx, s, own, req); err != nil {
		return err
	}
	whole, err := r.wholeHistory(ctx, tip)
	if err == nil && !whole {
		err = fmt.Errorf("fetching from %s: the history of %s did not come: %w", s, tip, packfile.ErrMissing)
	}
	return err
}

// bringFiles gets all files of a commit that tip descends from: those that are
// not here, or all of them, or, from a server that gives nothing by its hash,
// all that tip leads to.
func (r *Repo) bringFiles(ctx context.Context, s *wire.Server, own *git.Objects, clone lacking, commit, tip packfile.ID) error {
	known, err := r.knownTree(clone)
	if err != nil {
		return err
	}
	if whole, err := r.wholeTree(commit, known); whole || err != nil {
		return err
	}
	err = r.bringChanged(ctx, s, own, commit, known)
	for _, req := range []wire.FetchRequest{{Wants: []packfile.ID{commit}, Depth: 1}, {Wants: []packfile.ID{tip}}} {
		if err != nil && !unreachable(err) && !errors.Is(err, wire.ErrTooLarge) {
			err = r.bringTo(ctx, s, own, req)
		}
	}
	if err != nil {
		return err
	}
	whole, err := r.wholeTree(commit, known)
	if err == nil && !whole {
		err = fmt.Errorf("fetching from %s: the files of commit %s did not come: %w", s, commit, packfile.ErrMissing)
	}
	return err
}

// maxFiles is how many files are asked for one by one.
const maxFiles = 5000

// bringChanged gets the directories of a commit, and then those files that are
// not here.
func (r *Repo) bringChanged(ctx context.Context, s *wire.Server, own *git.Objects, commit, known packfile.ID) error {
	err := r.bringTo(ctx, s, own, wire.FetchRequest{Wants: []packfile.ID{commit}, Depth: 1, Filter: "blob:none"})
	if err != nil {
		return err
	}
	files, err := r.absentFiles(commit, known)
	switch {
	case err != nil || len(files) == 0:
		return err
	case len(files) > maxFiles:
		return fmt.Errorf("%d files are missing", len(files))
	}
	return r.bringTo(ctx, s, own, wire.FetchRequest{Wants: files})
}

// knownTree is a tree of which git has all, zero if none is known.
func (r *Repo) knownTree(clone lacking) (packfile.ID, error) {
	if clone.partial || len(clone.before) == 0 {
		return packfile.None, nil
	}
	c, err := readCommit(r.objects, clone.before[0])
	return c.Tree, missingIsNil(err)
}

func missingIsNil(err error) error {
	if errors.Is(err, packfile.ErrMissing) {
		return nil
	}
	return err
}

func (r *Repo) bringTo(ctx context.Context, s *wire.Server, own *git.Objects, req wire.FetchRequest) error {
	req.Limit = fetchLimit
	held, err := fetchPack(ctx, s, req, own, false)
	held.Release() // git deletes nothing there
	return err
}

// FetchMergeBase is MergeBase of two commits that Fetch returned, b from this
// server; all files of the merge base are here afterwards.
func (r *Repo) FetchMergeBase(ctx context.Context, s *wire.Server, a, b string) (string, error) {
	base, err := r.MergeBase(ctx, a, b)
	if err != nil {
		return "", err
	}
	return base, r.FetchFiles(ctx, s, base, b)
}

// FetchFiles brings all files of a commit, which is tip or before it, to a
// shallow or partial clone; another has them. tip is one that Fetch returned
// from this server.
func (r *Repo) FetchFiles(ctx context.Context, s *wire.Server, commit, tip string) error {
	clone, err := r.lacks()
	if err != nil || clone.nothing() {
		return err
	}
	r.fetching.Lock()
	defer r.fetching.Unlock()
	own, err := r.openOwn()
	if err != nil {
		return err
	}
	return r.bringFiles(ctx, s, own, clone, r.id(commit), r.id(tip))
}
