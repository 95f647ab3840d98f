package workspace

import (
	"maps"
	"path"
	"slices"
)

// place removes what goes, then renames what stays into place.
func (w *writer) place() {
	going, coming := w.todo(true), w.todo(false)
	err := inParallel(w.workers, len(going), func(n int) error { return w.removeIn(going[n]) })
	if err == nil {
		w.removeEmpty()
		err = inParallel(w.workers, len(coming), func(n int) error { return w.renameIn(coming[n]) })
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
