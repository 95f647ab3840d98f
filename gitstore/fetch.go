package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/record/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// DefaultFetchLimit is how many bytes a pack may have that Fetch asks for.
const DefaultFetchLimit = 1 << 30

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
func (r *Repo) fetch(ctx context.Context, s *wire.Server, ref string, history bool) (object.ID, error) {
	if _, err := refName(ref); err != nil && ref != "HEAD" {
		return object.None, err
	}
	r.fetching.Lock()
	defer r.fetching.Unlock()
	var before object.ID
	var failed error
	for range 3 {
		tip, err := s.Tip(ctx, ref)
		if err != nil || tip.IsZero() {
			return object.None, err
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
	return object.None, failed
}

// bring gets what a commit needs, and keeps it.
func (r *Repo) bring(ctx context.Context, s *wire.Server, ref string, tip object.ID, history bool) error {
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
func (r *Repo) bringWhole(ctx context.Context, s *wire.Server, ref string, tip object.ID) error {
	ours := keptRef(s, ref)
	now, err := r.tip(ours)
	if err != nil || now == tip {
		return err
	}
	tips, err := r.tips()
	if err != nil {
		return err
	}
	within, err := r.within(tips, tip)
	if err == nil && !within {
		held, err := r.bringPack(ctx, s, tip, tips)
		if err != nil {
			return err
		}
		defer held.Release()
	}
	if err != nil {
		return err
	}
	return r.keep(ours, now, tip)
}

func (r *Repo) fetchLimit() int64 {
	if r.FetchLimit == 0 {
		return DefaultFetchLimit
	}
	return r.FetchLimit
}

// bringPack gets a pack with a commit, and writes it if nothing lacks in it. It
// is held until a ref keeps the commit.
func (r *Repo) bringPack(ctx context.Context, s *wire.Server, tip object.ID, haves []object.ID) (held packfile.Held, err error) {
	batch, err := fetchBatch(ctx, s, wire.FetchRequest{Wants: []object.ID{tip}, Haves: haves, Limit: r.fetchLimit()}, r.objects)
	if err != nil {
		return "", err
	}
	if err := r.closed(batch, tip); err != nil {
		return "", fmt.Errorf("fetching %s from %s: %w", tip, s, err)
	}
	return packfile.Write(r.objects.Dir, batch)
}

// fetchBatch gets a pack, whose deltas may be on what is here.
func fetchBatch(ctx context.Context, s *wire.Server, req wire.FetchRequest, here source) (*packfile.Batch, error) {
	pack, err := s.Fetch(ctx, req)
	if err != nil {
		return nil, err
	}
	batch, err := packfile.Decode(pack, object.FormatOf(req.Wants[0]), here.View)
	if err != nil {
		err = fmt.Errorf("fetching from %s: %w", s, err)
	}
	return batch, err
}

// closed refuses a pack with objects that need others which are neither in it
// nor here.
func (r *Repo) closed(batch *packfile.Batch, tip object.ID) error {
	if _, err := readCommit(overlay{batch, r.objects}, tip); err != nil {
		return err
	}
	for _, id := range batch.IDs() {
		o, _ := batch.Get(id)
		needs, err := needed(o, batch.Format)
		if err != nil {
			return fmt.Errorf("object %s: %w", id, err)
		}
		for _, need := range needs {
			if !batch.Has(need) && !r.has(need) {
				return fmt.Errorf("object %s needs %s: %w", id, need, packfile.ErrMissing)
			}
		}
	}
	return nil
}

func (r *Repo) has(id object.ID) bool {
	_, _, err := r.objects.Size(id)
	return err == nil
}

// needed are the objects that one names, but for the commits of submodules.
func needed(o packfile.Object, f object.Format) (out []object.ID, err error) {
	switch o.Type {
	case plumbing.CommitObject:
		c, err := object.ParseCommit(o.Data)
		return append(c.Parents, c.Tree), err
	case plumbing.TreeObject:
		entries, err := parseTree(o.Data, f)
		for _, e := range entries {
			if e.mode != submodule {
				out = append(out, e.id)
			}
		}
		return out, err
	case plumbing.TagObject:
		tagged, _, ok := object.HeaderLine(string(o.Data), "object ")
		if !ok {
			err = errors.New("the tag is malformed")
		}
		return []object.ID{tagged}, err
	}
	return nil, nil
}

var pullRequest = lazyregexp.New(`^refs/pull/[1-9][0-9]{0,9}/(head|merge)$`)

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
func (r *Repo) keep(name plumbing.ReferenceName, old, commit object.ID) error {
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
func (r *Repo) tips() ([]object.ID, error) {
	var out []object.ID
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

// What it takes to call a commit an old one: the clocks of those who commit
// differ, and a history may be long.
const (
	slack     = 7 * 24 * 60 * 60
	maxWithin = 200_000
)

// within reports whether a commit is one of tips or before one, as far as commits
// that are not older tell. If so, git sees to it that all of it is here.
func (r *Repo) within(tips []object.ID, commit object.ID) (bool, error) {
	o, err := r.objects.View(commit)
	if err != nil {
		return false, missingIsNil(err)
	}
	since, seen := committedAt(o.Data)-slack, map[object.ID]bool{}
	return lineage.Walk(objectsOf{r.objects}, tips, commit, seen, func(_ object.ID, raw []byte) bool {
		return len(seen) < maxWithin && committedAt(raw) >= since
	})
}

// wholeHistory reports whether a commit and all before it are here.
func (r *Repo) wholeHistory(commit object.ID) (bool, error) {
	_, err := lineage.Walk(objectsOf{r.objects}, []object.ID{commit}, object.None, map[object.ID]bool{}, nil)
	return err == nil, missingIsNil(err)
}

// absentFiles returns the files of a commit that are not here; a directory that
// is not is packfile.ErrMissing. What is in known, the tree of a commit that is
// all here, is not looked at again.
func (r *Repo) absentFiles(commit, known object.ID) (files []object.ID, err error) {
	c, err := readCommit(r.objects, commit)
	if err != nil {
		return nil, err
	}
	seen := map[object.ID]bool{}
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
func (r *Repo) wholeTree(commit, known object.ID) (bool, error) {
	files, err := r.absentFiles(commit, known)
	return err == nil && len(files) == 0, missingIsNil(err)
}
