package packfile

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxLoose is how many objects become files of their own, as git's own commands
// leave them; more become a pack.
const maxLoose = 20

// Write adds the objects to the repository, durably: when it returns, the
// files are on the disk. Objects that the repository has already are written
// again, since an old one that no ref names may be about to be deleted.
func (s *Store) Write(b *Batch) error {
	if len(b.ids) > maxLoose {
		_, err := s.WritePack(b)
		return err
	}
	return wrapWrite(writeFiles(s.dirs[0].path, b))
}

// WritePack adds the objects as one pack, however few, and returns the pack's
// name: "pack-<hex>".
func (s *Store) WritePack(b *Batch) (name string, err error) {
	if b.pack != nil {
		return b.pack.Name(), s.Install(b.pack)
	}
	name, err = s.writePack(func(to io.Writer) ([]packed, plumbing.Hash, error) { return encodePack(to, b) }, noCheck)
	return name, wrapWrite(err)
}

// Install adds the objects of a pack, and the pack as it is, durably.
func (s *Store) Install(p *Pack) error {
	_, err := s.writePack(func(to io.Writer) ([]packed, plumbing.Hash, error) {
		_, err := p.WriteTo(to)
		return p.entries, p.sum, err
	}, noCheck)
	return wrapWrite(err)
}

func wrapWrite(err error) error {
	if err != nil {
		err = fmt.Errorf("writing Git objects: %w", err)
	}
	return err
}

// SyncPacks puts packs on the disk that somebody else wrote into this
// repository.
func (s *Store) SyncPacks(names []string) error {
	dir := filepath.Join(s.dirs[0].path, "pack")
	var errs []error
	for _, name := range names {
		for _, ext := range []string{".pack", ".idx"} {
			errs = append(errs, syncPath(filepath.Join(dir, name+ext)))
		}
	}
	if err := errors.Join(append(errs, syncPath(dir))...); err != nil {
		return fmt.Errorf("writing Git objects: %w", err)
	}
	return nil
}

func writeFiles(dir string, b *Batch) error {
	errs := make([]error, len(b.ids))
	atOnce(len(b.ids), func(i int) { errs[i] = writeLoose(dir, b.object(int32(i)), b.ids[i]) })
	return errors.Join(errs...)
}

// writePack writes a pack and its index under temporary names that `git gc`
// knows and clears away, and then gives them theirs: the index last, as a pack
// without one does not count. Before they get their names, check may refuse
// them.
func (s *Store) writePack(encode func(io.Writer) ([]packed, plumbing.Hash, error), check func(pack, idx string) error) (_ string, err error) {
	dir := filepath.Join(s.dirs[0].path, "pack")
	pack, err := createTemp(dir, "tmp_pack_")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, pack.remove()) }()
	entries, sum, err := encode(pack)
	if err != nil {
		return "", err
	}
	idx, err := createTemp(dir, "tmp_idx_")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, idx.remove()) }()
	var errPack, errIdx error
	atOnce(2, func(i int) {
		if i == 0 {
			errPack = pack.finish()
		} else if _, errIdx = idx.Write(encodeIndex(entries, sum)); errIdx == nil {
			errIdx = idx.finish()
		}
	})
	if err := errors.Join(errPack, errIdx); err != nil {
		return "", err
	}
	if err := check(pack.Name(), idx.Name()); err != nil {
		return "", err
	}
	name := packName(sum)
	if err := install(pack, filepath.Join(dir, name+".pack")); err != nil {
		return "", err
	}
	if err := install(idx, filepath.Join(dir, name+".idx")); err != nil {
		return "", err
	}
	return name, syncPath(dir)
}

func noCheck(_, _ string) error { return nil }

func packName(sum plumbing.Hash) string { return "pack-" + sum.String() }
