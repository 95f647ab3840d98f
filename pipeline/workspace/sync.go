package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// few is how many files are synced one by one. Where there are more, and the
// system can, all that its memory holds of the file system is written at once:
// one wait for the disk instead of thousands.
//
// Either way all new content is on disk before the first rename, so that after
// a power cut no name stands for half a file; and all names are before Write
// returns, so that what the ledger then calls applied stays applied.
const few = 32

// syncNames has the names on disk that were removed and renamed into place.
func (w *writer) syncNames(in []folder) error {
	if !w.oneByOne {
		return w.disks.sync()
	}
	seen := map[string]bool{}
	var dirs []string
	for _, f := range in {
		for _, dir := range append(parents(path.Join(f.name, "x")), ".") {
			if !seen[dir] {
				seen[dir] = true
				dirs = append(dirs, dir)
			}
		}
	}
	return inParallel(w.workers, len(dirs), func(i int) error { return w.syncNamed(dirs[i]) })
}

// syncNamed syncs a directory, unless something else is there now: its files
// will not read back.
func (t *Tree) syncNamed(name string) error {
	dir, at, err := t.reach(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLink) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	if at != name {
		return nil
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}

// syncDir syncs a directory, where the file system knows how.
func syncDir(dir *os.File) error {
	err := dir.Sync()
	if !dirsSync || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
