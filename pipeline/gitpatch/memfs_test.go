package gitpatch_test

import (
	"io/fs"
	"path"
	"time"

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
		m.link(name, modeOf(f))
	}
	return m
}

func (m memFS) link(name string, mode fs.FileMode) {
	dir := path.Dir(name)
	if _, known := m.dirs[dir]; !known {
		m.dirs[dir] = nil
		m.link(dir, fs.ModeDir|0o755)
	}
	m.dirs[dir] = append(m.dirs[dir], fs.FileInfoToDirEntry(entry{name, mode}))
}

func (m memFS) Lstat(name string) (fs.FileInfo, error) {
	if _, ok := m.dirs[name]; ok {
		return entry{name, fs.ModeDir | 0o755}, nil
	}
	f, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	}
	return entry{name, modeOf(f)}, nil
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

func modeOf(f *patch.File) fs.FileMode {
	if f.Mode == patch.Executable {
		return 0o755
	}
	return 0o644
}

type entry struct {
	name string
	mode fs.FileMode
}

func (e entry) Name() string       { return path.Base(e.name) }
func (e entry) Size() int64        { return 0 }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.mode.IsDir() }
func (e entry) Sys() any           { return nil }
func (e entry) Mode() fs.FileMode  { return e.mode }
