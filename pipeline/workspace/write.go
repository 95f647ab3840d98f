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
// and reported as done.
func (t *Tree) Write(files []patch.Change) []result.Operation {
	w := &writer{Tree: t, ops: make([]result.Operation, len(files)), made: map[string]bool{}}
	for i, f := range files {
		w.ops[i] = skipped(f)
	}
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
	made   map[string]bool // directories this write made
}

// staged is new content that waits beside its target.
type staged struct {
	index int
	temp  string
}

func (w *writer) fail(i int, f patch.Change, doing string, err error) {
	w.ops[i] = failed(f, doing+": "+plain(err).Error())
	w.failed = true
}

var errChanged = errors.New("the file is not as the approved change found it")

// check looks once more, right before the effect, and marks what is done.
func (w *writer) check(files []patch.Change) {
	for i, f := range files {
		states, err := w.Inspect(files[i : i+1])
		switch {
		case err != nil:
			w.fail(i, f, "cannot read", err)
		case states[0] == After:
			w.ops[i] = succeeded(f)
		case states[0] == Other:
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
		temp, err := w.writeTemp(i, f)
		if err != nil {
			w.fail(i, f, "cannot write", err)
			return
		}
		w.temps = append(w.temps, staged{i, temp})
	}
}

// writeTemp writes the new content beside the target, or at the nearest place
// above it where a file still is in the way of a directory.
func (w *writer) writeTemp(i int, f patch.Change) (string, error) {
	dir := w.makeParents(f.Path)
	name := path.Join(dir, fmt.Sprintf(".countersign-%d-%d.tmp", os.Getpid(), i))
	perm := fs.FileMode(0o666)
	if f.After.Mode == patch.Executable {
		perm = 0o777
	}
	file, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return "", err
	}
	_, err = file.Write(f.After.Data)
	err = errors.Join(err, w.keepMode(file, f), file.Sync(), file.Close())
	if err != nil {
		return "", errors.Join(err, w.root.Remove(name))
	}
	return name, nil
}

// makeParents makes the directories above a path and returns the deepest one
// that is there now.
func (w *writer) makeParents(name string) string {
	above := parents(name)
	dir := "."
	for i := len(above) - 1; i >= 0; i-- {
		if err := w.root.Mkdir(above[i], 0o777); err == nil {
			w.made[above[i]] = true
		}
		if info, err := w.root.Lstat(above[i]); err != nil || !info.IsDir() {
			break
		}
		dir = above[i]
	}
	return dir
}

// keepMode carries an updated file's permissions over, with the executable bit
// as the change wants it.
func (w *writer) keepMode(file *os.File, f patch.Change) error {
	if f.Before == nil {
		return nil
	}
	info, err := w.root.Lstat(f.Path)
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
		if w.todo(i) && f.After == nil && !w.failed {
			w.remove(i, f)
		}
	}
	for n, s := range w.temps {
		if w.failed {
			return
		}
		f := files[s.index]
		w.makeParents(f.Path)
		if w.isEmptyDir(f.Path) {
			_ = w.root.Remove(f.Path)
		}
		if err := w.root.Rename(s.temp, f.Path); err != nil {
			w.fail(s.index, f, "cannot write", err)
			return
		}
		w.temps[n].temp = ""
		w.readBack(s.index, f)
	}
}

func (w *writer) remove(i int, f patch.Change) {
	if err := w.root.Remove(f.Path); err != nil {
		w.fail(i, f, "cannot delete", err)
		return
	}
	for _, dir := range parents(f.Path) {
		if w.root.Remove(dir) != nil {
			break // not empty: something else lives there
		}
	}
	w.readBack(i, f)
}

// readBack reports what is on disk now, not what was sent there.
func (w *writer) readBack(i int, f patch.Change) {
	states, err := w.Inspect([]patch.Change{{Path: f.Path, After: f.After, Before: f.After}})
	switch {
	case err != nil:
		w.fail(i, f, "cannot read back", err)
	case states[0] == Other:
		w.fail(i, f, "read back", errors.New("the file is not what was written"))
	default:
		w.ops[i] = succeeded(f)
	}
}

// clean removes temporary files and directories that a failed write leaves.
func (w *writer) clean() {
	for _, s := range w.temps {
		if s.temp != "" {
			_ = w.root.Remove(s.temp)
		}
	}
	if !w.failed {
		return
	}
	for range w.made { // deepest first needs no order: repeat until none goes
		for dir := range w.made {
			if w.root.Remove(dir) == nil {
				delete(w.made, dir)
			}
		}
	}
}
