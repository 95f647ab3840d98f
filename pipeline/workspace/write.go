package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// Write brings every file to its After. New content is first written to
// temporary files beside their targets; only when all of it is on disk are
// files removed and renamed into place, so a full disk or a directory that may
// not be written leaves the tree as it was. Each file is read back; one that is
// not what it should be is an error, whatever was written.
//
// A file that has its After already (an apply that was cut off) is left alone
// and reported as done. The caller holds the Lock.
func (t *Tree) Write(files []patch.Change) []result.Operation {
	w := newWriter(t, files)
	w.check(files)
	if !w.failed {
		w.stage(files)
	}
	if !w.failed {
		w.place(files)
	}
	w.clean()
	return w.ops
}

type writer struct {
	*Tree
	ops    []result.Operation
	temps  []staged
	failed bool
	made   []string // directories this write made, each after those above it
}

func newWriter(t *Tree, files []patch.Change) *writer {
	w := &writer{Tree: t, ops: make([]result.Operation, len(files))}
	for i, f := range files {
		w.ops[i] = skipped(f)
	}
	return w
}

// staged is new content that waits in a directory: the target's, or the nearest
// one above it where a file still is in the way of a directory.
type staged struct {
	index int
	dir   string
}

// temp is the name that waiting content has. It is the same in every run, so
// that what a crash left behind is found and replaced.
func (s staged) temp() string { return fmt.Sprintf(".countersign-%d.tmp", s.index) }

func (w *writer) fail(i int, f patch.Change, doing string, err error) {
	w.ops[i] = failed(f, doing+": "+plain(err).Error())
	w.failed = true
}

var errChanged = errors.New("the file is not as the approved change found it")

// check looks once more, right before the effect, and marks what is done.
func (w *writer) check(files []patch.Change) {
	gone := deleted(files)
	for i, f := range files {
		state, err := w.state(f, gone)
		switch {
		case err != nil:
			w.fail(i, f, "cannot read", err)
		case state == After:
			w.ops[i] = succeeded(f)
		case state == Other:
			w.fail(i, f, "cannot write", errChanged)
		}
	}
}

func (w *writer) todo(i int) bool { return w.ops[i].Status == result.StatusSkipped }

func (w *writer) stage(files []patch.Change) {
	for i, f := range files {
		if !w.todo(i) || f.After == nil {
			continue
		}
		if err := w.stageOne(i, f); err != nil {
			w.fail(i, f, "cannot write", err)
			return
		}
	}
}

func (w *writer) stageOne(i int, f patch.Change) error {
	for _, above := range append(parents(f.Path), ".") {
		w.drop(staged{i, above})
	}
	dir, at, err := w.reach(path.Dir(f.Path), true)
	if err != nil {
		return err
	}
	defer dir.Close()
	s := staged{i, at}
	if err := writeTemp(dir, s.temp(), f); err != nil {
		return err
	}
	w.temps = append(w.temps, s)
	return nil
}

func writeTemp(dir *os.Root, name string, f patch.Change) error {
	perm := fs.FileMode(0o666)
	if f.After.Mode == patch.Executable {
		perm = 0o777
	}
	file, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(f.After.Data)
	err = errors.Join(err, keepMode(dir, file, f), file.Sync(), file.Close())
	if err != nil {
		return errors.Join(err, dir.Remove(name))
	}
	return nil
}

// keepMode carries an updated file's permissions over, with the executable bit
// as the change wants it.
func keepMode(dir *os.Root, file *os.File, f patch.Change) error {
	if f.Before == nil {
		return nil
	}
	info, err := dir.Lstat(path.Base(f.Path))
	if err != nil {
		return err
	}
	perm := info.Mode().Perm()
	switch {
	case f.Before.Mode == f.After.Mode:
	case f.After.Mode == patch.Executable:
		perm |= perm & 0o444 >> 2
	default:
		perm &^= 0o111
	}
	return file.Chmod(perm)
}

// place removes what goes, then renames what stays into place.
func (w *writer) place(files []patch.Change) {
	for i, f := range files {
		if !w.todo(i) || f.After != nil || w.failed {
			continue
		}
		if err := w.remove(f.Path); err != nil {
			w.fail(i, f, "cannot delete", err)
			return
		}
		w.readBack(i, f)
	}
	for !w.failed && len(w.temps) > 0 {
		s := &w.temps[0]
		f := files[s.index]
		if err := w.put(s, f); err != nil {
			w.fail(s.index, f, "cannot write", err)
			return
		}
		w.readBack(s.index, f)
		w.temps = w.temps[1:]
	}
}

// put renames waiting content into place.
func (w *writer) put(s *staged, f patch.Change) error {
	want := path.Dir(f.Path)
	dir, at, err := w.reach(want, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	if at != want {
		return errInTheWay
	}
	if s.dir != want {
		w.drop(*s)
		s.dir = want
		if err := writeTemp(dir, s.temp(), f); err != nil {
			return err
		}
	}
	w.removeEmpty(f.Path)
	return dir.Rename(s.temp(), path.Base(f.Path))
}

// readBack reports what is on disk now, not what was sent there.
func (w *writer) readBack(i int, f patch.Change) {
	state, err := w.state(patch.Change{Path: f.Path, After: f.After, Before: f.After}, nil)
	switch {
	case err != nil:
		w.fail(i, f, "cannot read back", err)
	case state == Other:
		w.fail(i, f, "read back", errors.New("the file is not what was written"))
	default:
		w.ops[i] = succeeded(f)
	}
}

// clean removes temporary files and directories that a failed write leaves.
func (w *writer) clean() {
	for _, s := range w.temps {
		w.drop(s)
	}
	if !w.failed {
		return
	}
	for len(w.made) > 0 {
		last := len(w.made) - 1
		_ = w.unlink(w.made[last]) // not empty: a file got there before another failed
		w.made = w.made[:last]
	}
}
