package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
)

var (
	errInTheWay = errors.New("a file is in the way of a directory, or a directory in the way of a file")
	errLink     = errors.New("a directory above the file is a symbolic link")
)

// reach opens a directory, or the deepest one above it where a file is in the
// way, and says which. With create it makes what is missing. It goes down by
// handles, one real directory at a time: an os.Root alone would follow a link
// to another place in the working tree, such as .git.
func (w *writer) reach(name string, create bool) (dir *os.Root, at string, err error) {
	if dir, err = w.root.OpenRoot("."); err != nil {
		return nil, "", err
	}
	at = "."
	for _, next := range slices.Backward(append([]string{name}, parents(name)...)) {
		if next == "." {
			break
		}
		var missing error
		if create {
			if missing = dir.Mkdir(path.Base(next), 0o777); missing == nil {
				w.made = append(w.made, next)
			}
		}
		below, err := enter(dir, path.Base(next))
		if errors.Is(err, errInTheWay) {
			return dir, at, nil
		}
		_ = dir.Close()
		if err != nil {
			return nil, "", cause(err, missing)
		}
		dir, at = below, next
	}
	return dir, at, nil
}

// cause prefers why a directory could not be made to its not being there.
func cause(err, missing error) error {
	if missing != nil && errors.Is(err, fs.ErrNotExist) {
		return missing
	}
	return err
}

// enter opens a directory that is not a link. Once it is open, its name may
// come to mean something else: the handle stays where it was checked.
func enter(dir *os.Root, name string) (*os.Root, error) {
	info, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Type() == fs.ModeSymlink:
		return nil, errLink
	case !info.IsDir():
		return nil, errInTheWay
	}
	below, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := below.Stat("."); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(err, errLink, below.Close())
	}
	return below, nil
}

// unlink removes a file or an empty directory, and follows no link to it.
func (w *writer) unlink(name string) error {
	dir, at, err := w.reach(path.Dir(name), false)
	if err != nil {
		return err
	}
	defer dir.Close()
	if at != path.Dir(name) {
		return errInTheWay
	}
	return dir.Remove(path.Base(name))
}

// drop removes waiting content, if it is there.
func (w *writer) drop(s staged) { _ = w.unlink(path.Join(s.dir, s.temp())) }

// remove removes a file, and the directories above it that this leaves empty.
func (w *writer) remove(name string) error {
	if err := w.unlink(name); err != nil {
		return err
	}
	for _, dir := range parents(name) {
		if w.unlink(dir) != nil {
			break // not empty: something else lives there
		}
	}
	return nil
}

// removeEmpty removes a directory that holds nothing but directories; whether
// it could is seen when something is to take its place.
func (w *writer) removeEmpty(name string) {
	if info, err := w.root.Lstat(name); err != nil || !info.IsDir() || !w.free(name, nil) {
		return
	}
	var dirs []string
	_ = fs.WalkDir(w.root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		dirs = append(dirs, p)
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		_ = w.unlink(dir)
	}
}
