package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

// stage writes all new content to temporary files and has it on disk.
func (w *writer) stage() {
	into := w.todo(false)
	w.oneByOne = !canSyncDisk || count(into)+count(w.todo(true)) <= few
	err := w.record(into)
	if err == nil {
		err = inParallel(w.workers, len(into), func(n int) error { return w.stageIn(into[n]) })
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

// sameFile reports whether a file is still the one it was, as far as can be told
// without reading it again.
func sameFile(was, is fs.FileInfo) bool {
	return os.SameFile(was, is) && was.Mode() == is.Mode() && was.Size() == is.Size() && was.ModTime().Equal(is.ModTime())
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
