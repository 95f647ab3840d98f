package gitpatch_test

import (
	"io/fs"
	"path"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// memFS is a tree in memory as an fs.ReadLinkFS, fast with many files.
type memFS struct {
	files map[string]*patch.File
	dirs  map[string][]fs.DirEntry
}

func newMemFS(files map[string]*patch.File) memFS {
	m := memFS{files, map[string][]fs.DirEntry{".": nil}}
	for name, f := range files {
		mode := "100644"
		if f.Mode == patch.Executable {
			mode = "100755"
		}
		m.link(name, mode)
	}
	return m
}

func (m memFS) link(name, mode string) {
	dir := path.Dir(name)
	if _, known := m.dirs[dir]; !known {
		m.dirs[dir] = nil
		m.link(dir, "40000")
	}
	m.dirs[dir] = append(m.dirs[dir], fs.FileInfoToDirEntry(entry{name: name, mode: mode}))
}

func (m memFS) Lstat(name string) (fs.FileInfo, error) {
	if _, ok := m.dirs[name]; ok {
		return entry{name: name, mode: "40000"}, nil
	}
	f, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	}
	return entry{name: name, mode: f.Mode.String()}, nil
}

func (m memFS) ReadFile(name string) ([]byte, error) {
	f, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return f.Data, nil
}

func (m memFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, ok := m.dirs[name]
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return entries, nil
}

func (m memFS) ReadLink(string) (string, error)   { return "", fs.ErrInvalid }
func (m memFS) Open(name string) (fs.File, error) { return nil, fs.ErrInvalid }
