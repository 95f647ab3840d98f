package packfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Version is an object's place in a pack: after those before it, and maybe as
// a delta on one of them, of which it is a later version.
type Version struct{ ID, Base plumbing.Hash }

// A Plan puts objects in the order in which they are to be in a pack. Those
// that it leaves out come last. get reads an object.
type Plan func(ids []plumbing.Hash, get func(plumbing.Hash) (Object, error)) ([]Version, error)

// Merge writes one pack of all objects of the repository's own packs of these
// names, reads it back, and then removes those packs. Packs that are gone, or
// that git wants kept as they are, are left out; if there are not two then,
// nothing is done and the name is "".
//
// At every moment each object is in a pack that has its name: a reader that
// finds its pack gone looks again, as Store and git do, and a crash leaves the
// old packs, some of them or none, but always the new one if any is removed.
// Where an old one cannot be removed, the new one's name is returned with the
// error.
func (s *Store) Merge(names []string, plan Plan) (name string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("merging packs: %w", err)
		}
	}()
	dir := filepath.Join(s.dirs[0].path, "pack")
	names, err = mergeable(dir, names)
	if err != nil || len(names) < 2 {
		return "", err
	}
	ids, err := idsOf(dir, names)
	if err != nil {
		return "", err
	}
	b, err := s.collect(ids, plan)
	if err != nil {
		return "", err
	}
	merged, err := s.writePack(func(to io.Writer) ([]packed, plumbing.Hash, error) { return encodePack(to, b) },
		func(pack, idx string) error { return readBack(pack, idx, ids) })
	if err != nil {
		return "", err
	}
	defer s.Release(merged)
	if names, err = mergeable(dir, names); err != nil { // somebody may have marked one since
		return merged, err
	}
	s.dirs[0].forget(names)
	var errs []error
	for _, old := range names {
		errs = append(errs, removePack(filepath.Join(dir, old)))
	}
	return merged, errors.Join(errs...)
}

// remove is os.Remove, but in tests.
var remove = os.Remove

// removePack removes the index first: a pack without one does not count, an
// index without its pack is an error to git.
func removePack(path string) error {
	for _, ext := range []string{".idx", ".pack", ".rev", ".bitmap"} {
		if err := remove(path + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// mergeable leaves out the packs that are gone and those that are more than
// their objects: with .keep, a promise that others have what is missing, a list
// of when each object was last wanted, or an index over many packs.
func mergeable(dir string, names []string) (out []string, err error) {
	var over []byte // all indexes over many packs, each of which names its packs (gitformat-pack(5), "PNAM")
	for _, pattern := range []string{"multi-pack-index", "multi-pack-index.d/*.midx"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			over = append(over, data...)
		}
	}
	for _, name := range names {
		if filepath.Base(name) != name || slices.Contains(out, name) {
			continue
		}
		has := func(ext string) bool {
			_, err := os.Lstat(filepath.Join(dir, name+ext))
			return !errors.Is(err, fs.ErrNotExist)
		}
		if has(".pack") && has(".idx") && !has(".keep") && !has(".promisor") && !has(".mtimes") && !bytes.Contains(over, []byte(name+".idx\x00")) {
			out = append(out, name)
		}
	}
	return out, nil
}

// idsOf are the objects of the packs, once each, in the order they are in.
func idsOf(dir string, names []string) (ids []plumbing.Hash, err error) {
	seen := map[plumbing.Hash]bool{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name+".idx"))
		if err != nil {
			return nil, err
		}
		entries, err := (&index{data: data}).verify()
		if err != nil {
			return nil, fmt.Errorf("%s.idx: %w", name, err)
		}
		for _, e := range entries {
			if !seen[e.id] {
				seen[e.id] = true
				ids = append(ids, e.id)
			}
		}
	}
	return ids, nil
}

// collect reads the objects into a batch.
func (s *Store) collect(ids []plumbing.Hash, plan Plan) (*Batch, error) {
	wanted, err := plan(slices.Clone(ids), s.Read)
	if err != nil {
		return nil, err
	}
	left := make(map[plumbing.Hash]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	order := make([]Version, 0, len(ids))
	for _, v := range wanted {
		if left[v.ID] {
			delete(left, v.ID)
			order = append(order, v)
		}
	}
	for _, id := range ids {
		if left[id] {
			order = append(order, Version{ID: id})
		}
	}
	b := &Batch{}
	for some := range slices.Chunk(order, 512) { // read on all cores, added in their order
		objects, errs := make([]Object, len(some)), make([]error, len(some))
		Parallel(len(some), 64, func(i int) { objects[i], errs[i] = s.View(some[i].ID) })
		if err := firstError(errs); err != nil {
			return nil, err
		}
		for i, v := range some {
			b.add(objects[i], v.ID, v.Base)
		}
	}
	return b, nil
}

// readBack reads a whole new pack and its index, and all of these objects in it.
func readBack(file, idx string, ids []plumbing.Hash) error {
	if err := verifyFiles(file, idx, func(int) {}); err != nil {
		return err
	}
	x, err := openIndex(idx)
	if err != nil {
		return err
	}
	p := &pack{name: filepath.Base(file), path: file, index: x}
	offsets := make([]int64, len(ids))
	at := make(map[int64]plumbing.Hash, len(ids))
	for i, id := range ids {
		if offsets[i], err = x.find(id); err != nil {
			return errors.Join(err, p.close())
		}
		at[offsets[i]] = id
	}
	slices.SortFunc(offsets, cmp.Compare[int64])
	c, errs := newCache(), make([]error, len(ids))
	Parallel(len(ids), 128, func(i int) {
		if offsets[i] == 0 {
			errs[i] = ErrMissing
			return
		}
		o, err := p.read(offsets[i], c)
		if err == nil {
			err = check(o, at[offsets[i]])
		}
		errs[i] = err
	})
	if err := firstError(errs); err != nil {
		return errors.Join(fmt.Errorf("the new pack: %w", err), p.close())
	}
	return p.close()
}
