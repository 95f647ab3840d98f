package patch

import (
	"errors"
	"io/fs"
)

// tree reads files of a base once each. It is for one goroutine, as the base
// need not be safe for more.
type tree struct {
	base  fs.FS
	files map[string]*File
	dirs  map[string]fs.FileMode
}

func newTree(base fs.FS) *tree {
	return &tree{base, map[string]*File{}, map[string]fs.FileMode{}}
}

// Lookup returns a regular file of a tree, nil if there is none at the path. A
// link or a submodule at the path or above it is an *Error.
func Lookup(base fs.FS, path string) (*File, error) { return newTree(base).file(path) }

func (t *tree) file(path string) (*File, error) {
	if f, known := t.files[path]; known {
		return f, nil
	}
	f, err := t.read(path)
	if err == nil {
		t.files[path] = f
	}
	return f, err
}

func (t *tree) read(path string) (*File, error) {
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
			return nil, &Error{Path: path, Message: "is under a symbolic link or submodule"}
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
		return nil, &Error{Path: path, Message: "is a symbolic link or submodule"}
	}
	data, err := fs.ReadFile(t.base, path)
	if err != nil {
		return nil, err
	}
	return &File{Mode: modeOf(info), Data: data}, nil
}

// nothing stands for a path that does not exist.
const nothing = fs.ModeIrregular | fs.ModeDir

// dirMode is the type of what stands above some path.
func (t *tree) dirMode(dir string) (fs.FileMode, error) {
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

func modeOf(info fs.FileInfo) Mode {
	if info.Mode()&0o111 != 0 {
		return Executable
	}
	return Regular
}
