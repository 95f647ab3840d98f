// Package regular finds the regular files of a tree, to which no link leads.
package regular

import (
	"errors"
	"io/fs"
)

// A Tree remembers the directories that it has seen. It is for one goroutine, as the
// base need not be safe for more.
type Tree struct {
	base fs.FS
	dirs map[string]fs.FileMode
}

// New returns a Tree of a base.
func New(base fs.FS) *Tree { return &Tree{base, map[string]fs.FileMode{}} }

// An Error says why what is at a path is neither a regular file nor nothing.
type Error string

func (e Error) Error() string { return string(e) }

// Stat describes the regular file at a path, nil if there is none. A link or a submodule
// at the path or above it is an [Error].
func (t *Tree) Stat(path string) (fs.FileInfo, error) {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		switch mode, err := t.dirMode(path[:i]); {
		case err != nil:
			return nil, err
		case mode == nothing || mode.IsRegular():
			return nil, nil
		case !mode.IsDir():
			return nil, Error("is under a symbolic link or submodule")
		}
	}
	info, err := fs.Lstat(t.base, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, nil
	case !info.Mode().IsRegular():
		return nil, Error("is a symbolic link or submodule")
	}
	return info, nil
}

// nothing stands for a path that does not exist.
const nothing = fs.ModeIrregular | fs.ModeDir

// dirMode is the type of what stands above some path.
func (t *Tree) dirMode(dir string) (fs.FileMode, error) {
	if mode, known := t.dirs[dir]; known {
		return mode, nil
	}
	mode := nothing
	info, err := fs.Lstat(t.base, dir)
	switch {
	case err == nil:
		mode = info.Mode().Type()
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	t.dirs[dir] = mode
	return mode, nil
}
