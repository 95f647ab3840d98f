package workspace

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// stage writes all new content to temporary files and has it on disk.
func (w *writer) stage() {
	into := w.todo(false)
	w.oneByOne = !canSyncDisk || count(into)+count(w.todo(true)) <= few
	err := w.record(into)
	if err == nil {
		err = parallel.Try(w.workers, len(into), func(n int) error { return w.stageIn(into[n]) })
	}
	if err == nil && !w.oneByOne {
		err = w.disks.sync()
	}
	if err != nil {
		w.fail(err)
	}
}

func count(into []folder) (n int) {
	for _, f := range into {
		n += len(f.files)
	}
	return n
}

// record puts the journal on disk.
func (w *writer) record(into []folder) error {
	if len(into) == 0 {
		return nil
	}
	prefix := newPrefix(w.files, func(i int) *string { return w.done[i].AfterHash })
	w.journal = w.plan(prefix, into, w.gone)
	if err := w.saveJournal(w.journal); err != nil {
		return &fileError{into[0].files[0], "cannot write the journal", err}
	}
	w.recorded = true
	return nil
}

func (w *writer) stageIn(f folder) error {
	dir, at, err := w.reachMaking(f.name)
	if err == nil {
		defer dir.Close()
		err = w.hold(dir)
	}
	if err != nil {
		return &fileError{f.files[0], "cannot write", err}
	}
	for _, i := range f.files {
		if err := w.writeTemp(dir, i, w.oneByOne); err != nil {
			return &fileError{i, "cannot write", err}
		}
		w.waits[i] = at
	}
	return nil
}

// hold notes the file system of a directory before anything changes there.
func (w *writer) hold(dir *os.Root) error {
	if w.oneByOne {
		return nil
	}
	return w.disks.hold(dir)
}

// writeTemp writes a file's new content beside it. The name holds a hash of the
// change, so what has it already was left there, or put there to be followed.
func (w *writer) writeTemp(dir *os.Root, i int, sync bool) error {
	name, f := w.journal.temp(i), w.files[i]
	perm, exact := permissions(f, w.seen[i].info)
	w.changing()
	file, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrExist) && dir.Remove(name) == nil {
		file, err = dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	}
	if err != nil {
		return err
	}
	w.changing()
	_, err = file.Write(f.After.Data)
	if err == nil && exact {
		err = file.Chmod(perm)
	}
	if err == nil && sync {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// permissions are a new file's, which the umask limits, or for one that is
// updated exactly those it had, with the executable bit as the change wants it.
// They are the nine bits alone: no set-user-id carries over to other content.
func permissions(f patch.Change, was fs.FileInfo) (perm fs.FileMode, exact bool) {
	executable := f.After.Mode == patch.Executable
	if was == nil {
		if executable {
			return 0o777, false
		}
		return 0o666, false
	}
	perm = was.Mode().Perm()
	switch {
	case f.Before.Mode == f.After.Mode:
	case executable:
		perm |= perm & 0o444 >> 2
	default:
		perm &^= 0o111
	}
	return perm, true
}

// move brings waiting content to its own directory, which is there only since
// the file in its way is gone.
func (w *writer) move(dir *os.Root, to string, i int) error {
	if err := w.writeTemp(dir, i, true); err != nil {
		return err
	}
	above, at, err := w.reach(w.waits[i])
	if err != nil {
		return err
	}
	defer above.Close()
	if at != w.waits[i] {
		return errInTheWay
	}
	w.waits[i] = to
	w.changing()
	return above.Remove(path.Base(w.journal.temp(i)))
}

// place removes what goes, then renames what stays into place.
func (w *writer) place() {
	going, coming := w.todo(true), w.todo(false)
	err := parallel.Try(w.workers, len(going), func(n int) error { return w.removeIn(going[n]) })
	if err == nil {
		w.removeEmpty()
		err = parallel.Try(w.workers, len(coming), func(n int) error { return w.renameIn(coming[n]) })
	}
	if err != nil {
		w.fail(err)
	}
	if err := w.syncNames(append(going, coming...)); err != nil {
		w.fail(err)
	}
}

func (w *writer) removeIn(f folder) error {
	dir, at, err := w.reach(f.name)
	if err == nil {
		defer dir.Close()
		err = w.hold(dir)
		if at != f.name {
			err = errInTheWay
		}
	}
	if err != nil {
		return &fileError{f.files[0], "cannot delete", err}
	}
	for _, i := range f.files {
		name := path.Base(w.files[i].Path)
		info, err := dir.Lstat(name)
		if err = w.unchanged(info, err, i); err == nil {
			w.changing()
			err = dir.Remove(name)
		}
		if err != nil {
			return &fileError{i, "cannot delete", err}
		}
		w.placed[i] = true
	}
	return nil
}

// removeEmpty removes the directories that deletions leave empty, those of an
// earlier run that was cut off as well. New content that waits keeps its own.
func (w *writer) removeEmpty() {
	dirs := map[string]bool{}
	for _, f := range w.files {
		if f.After == nil {
			for _, dir := range parents(f.Path) {
				dirs[dir] = true
			}
		}
	}
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(dirs))) {
		w.removeDir(dir)
	}
}

func (w *writer) renameIn(f folder) error {
	dir, at, err := w.reachMaking(f.name)
	if err == nil {
		defer dir.Close()
		if at != f.name {
			err = errInTheWay
		}
	}
	if err != nil {
		return &fileError{f.files[0], "cannot write", err}
	}
	for _, i := range f.files {
		if w.waits[i] != f.name {
			if err := w.move(dir, f.name, i); err != nil {
				return &fileError{i, "cannot write", err}
			}
		}
		name := path.Base(w.files[i].Path)
		info, err := dir.Lstat(name)
		if err = w.unchanged(info, err, i); err == nil {
			if info != nil && info.IsDir() {
				w.removeTree(dir, w.files[i].Path)
			}
			w.changing()
			err = dir.Rename(w.journal.temp(i), name)
		}
		if err != nil {
			return &fileError{i, "cannot write", err}
		}
		w.placed[i] = true
	}
	return nil
}

// few is how many files are synced one by one. Where there are more, and the
// system can, all that its memory holds of the file system is written at once:
// one wait for the disk instead of thousands.
//
// Either way all new content is on disk before the first rename, so that after
// a power cut no name stands for half a file; and all names are before Write
// returns, so that what the ledger then calls applied stays applied.
const few = 32

// syncNames has the names on disk that were removed and renamed into place. A
// directory in whose place something else is by now is left out: its files will
// not read back.
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
	return parallel.Try(w.workers, len(dirs), func(i int) error {
		dir, at, err := w.reach(dirs[i])
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLink) {
			return nil
		}
		if err != nil {
			return err
		}
		defer dir.Close()
		if at != dirs[i] {
			return nil
		}
		f, err := dir.Open(".")
		if err != nil {
			return err
		}
		return errors.Join(atomicfile.Sync(f), f.Close())
	})
}
