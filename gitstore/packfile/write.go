package packfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
)

// maxLoose is how many objects become files of their own, as git's own commands
// leave them; more become a pack.
const maxLoose = 20

// Write adds the objects to the repository, durably: when it returns, the
// files are on the disk. Objects that the repository has already are written
// again, since an old one that no ref names may be about to be deleted.
func (s *Store) Write(b *Batch) error {
	var err error
	if dir := s.dirs[0].path; len(b.ids) > maxLoose {
		err = writePack(filepath.Join(dir, "pack"), b)
	} else {
		err = writeFiles(dir, b)
	}
	if err != nil {
		return fmt.Errorf("writing Git objects: %w", err)
	}
	return nil
}

func writeFiles(dir string, b *Batch) error {
	errs := make([]error, len(b.ids))
	atOnce(len(b.ids), func(i int) { errs[i] = writeLoose(dir, b.objects[i], b.ids[i]) })
	return errors.Join(errs...)
}

// writePack writes a pack and its index under temporary names that `git gc`
// knows and clears away, and then gives them theirs: the index last, as a pack
// without one does not count.
func writePack(dir string, b *Batch) (err error) {
	pack, err := createTemp(dir, "tmp_pack_")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pack.remove()) }()
	entries, sum, err := encodePack(pack, b)
	if err != nil {
		return err
	}
	idx, err := createTemp(dir, "tmp_idx_")
	if err != nil {
		return err
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
		return err
	}
	name := filepath.Join(dir, "pack-"+hex.EncodeToString(sum[:]))
	if err := install(pack, name+".pack"); err != nil {
		return err
	}
	if err := install(idx, name+".idx"); err != nil {
		return err
	}
	return syncDir(dir)
}
