package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

var (
	errInTheWay = errors.New("a file is in the way of a directory, or a directory in the way of a file")
	errLink     = errors.New("a directory above the file is a symbolic link")
)

// reach opens a directory, or the deepest one above it where a file is in the
// way, and says which. It goes down by handles, one real directory at a time:
// an os.Root alone would follow a link to another place in the working tree,
// such as .git.
func (t *Tree) reach(name string) (dir *os.Root, at string, err error) {
	return t.descend(name, func(*os.Root, string) error { return nil })
}

// reachMaking makes the directories that are missing.
func (t *Tree) reachMaking(name string) (dir *os.Root, at string, err error) {
	return t.descend(name, func(dir *os.Root, name string) error {
		if _, err := dir.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		t.changing()
		err := dir.Mkdir(name, 0o777)
		if errors.Is(err, fs.ErrExist) { // another worker was faster
			return nil
		}
		return err
	})
}

func (t *Tree) descend(name string, prepare func(*os.Root, string) error) (dir *os.Root, at string, err error) {
	if dir, err = t.root.OpenRoot("."); err != nil {
		return nil, "", err
	}
	at = "."
	for _, next := range slices.Backward(append([]string{name}, parents(name)...)) {
		if next == "." {
			break
		}
		var below *os.Root
		if err = prepare(dir, path.Base(next)); err == nil {
			below, err = enter(dir, path.Base(next))
		}
		if errors.Is(err, errInTheWay) {
			return dir, at, nil
		}
		_ = dir.Close()
		if err != nil {
			return nil, "", err
		}
		dir, at = below, next
	}
	return dir, at, nil
}

// enter opens a directory that is not a link. Once it is open, its name may
// come to mean something else: the handle stays where it was checked.
func enter(dir *os.Root, name string) (*os.Root, error) {
	info, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return nil, errInTheWay
	case !info.IsDir():
		return nil, errLink
	}
	below, err := dir.OpenRoot(name + "/.") // so that a pipe that takes its place is not opened
	if err != nil {
		return nil, err
	}
	if opened, err := below.Stat("."); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(err, errLink, below.Close())
	}
	return below, nil
}

// removeDir removes a directory if it is empty, and follows no link to it.
func (t *Tree) removeDir(name string) {
	dir, at, err := t.reach(path.Dir(name))
	if err != nil {
		return
	}
	defer dir.Close()
	if info, err := dir.Lstat(path.Base(name)); at == path.Dir(name) && err == nil && info.IsDir() {
		t.changing()
		_ = rmdir(dir, path.Base(name)) // not empty: something else lives there
	}
}

// removeTree removes a directory that holds nothing but directories; whether
// it could is seen when something is to take its place.
func (t *Tree) removeTree(dir *os.Root, name string) {
	if !onlyGone(dir, name, nil) {
		return
	}
	var dirs []string
	_ = fs.WalkDir(dir.FS(), path.Base(name), func(p string, d fs.DirEntry, err error) error {
		dirs = append(dirs, path.Join(path.Dir(name), p))
		return err
	})
	for _, d := range slices.Backward(dirs) {
		t.removeDir(d)
	}
}

// A folder is a directory with the indexes of those files of a change that are
// in it. It is opened once for all of them, and is one worker's.
type folder struct {
	name  string
	files []int
}

// folders sorts the files that are wanted into folders, in order.
func folders(files []patch.Change, wanted func(int) bool) []folder {
	var out []folder
	at := map[string]int{}
	for i, f := range files {
		if !wanted(i) {
			continue
		}
		dir := path.Dir(f.Path)
		n, known := at[dir]
		if !known {
			n = len(out)
			at[dir] = n
			out = append(out, folder{name: dir})
		}
		out[n].files = append(out[n].files, i)
	}
	return out
}

// parents returns the directories above a path, nearest first, without ".".
func parents(name string) []string {
	var out []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		out = append(out, dir)
	}
	return out
}

// onlyGone reports whether a directory holds nothing but directories and files
// that the same change removes.
func onlyGone(dir *os.Root, name string, gone map[string]bool) bool {
	above := path.Dir(name)
	err := fs.WalkDir(dir.FS(), path.Base(name), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !gone[path.Join(above, p)] {
			return errInTheWay
		}
		return err
	})
	return err == nil
}
