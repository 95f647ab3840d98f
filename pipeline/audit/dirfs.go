package audit

import (
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
)

// dirFS is the files of a transaction, with what is needed of fs.FS to check
// them: a walk, Lstat, and reading.
type dirFS struct {
	files   map[string]history.Entry
	content map[history.ID][]byte
	dirs    map[string][]string // names in each directory
}

var (
	_ fs.ReadDirFS  = (*dirFS)(nil)
	_ fs.ReadFileFS = (*dirFS)(nil)
	_ fs.ReadLinkFS = (*dirFS)(nil)
)

func newDirFS(files map[string]history.Entry, content map[history.ID][]byte) *dirFS {
	d := &dirFS{files, content, map[string][]string{".": nil}}
	for name := range files {
		if fs.ValidPath(name) && name != "." {
			d.list(name)
		}
	}
	return d
}

// list puts a path into its directory, and that into its own.
func (d *dirFS) list(name string) {
	dir := path.Dir(name)
	_, known := d.dirs[dir]
	d.dirs[dir] = append(d.dirs[dir], path.Base(name))
	if !known {
		d.list(dir)
	}
}

func (d *dirFS) info(op, name string) (dirInfo, error) {
	if _, ok := d.dirs[name]; ok {
		return dirInfo{path.Base(name), 0, fs.ModeDir | 0o555}, nil
	}
	e, ok := d.files[name]
	if !ok {
		return dirInfo{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	mode := fs.ModeIrregular
	switch e.Mode {
	case history.ModeFile:
		mode = 0o644
	case history.ModeDir:
		mode = fs.ModeDir | 0o555
	case 0o120000:
		mode = fs.ModeSymlink | 0o777
	}
	return dirInfo{path.Base(name), len(d.content[e.ID]), mode}, nil
}

// Lstat describes what is at a path.
func (d *dirFS) Lstat(name string) (fs.FileInfo, error) { return d.info("lstat", name) }

// Stat is Lstat: links are not followed.
func (d *dirFS) Stat(name string) (fs.FileInfo, error) { return d.info("stat", name) }

// ReadLink is not needed, and never succeeds.
func (d *dirFS) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
}

// ReadFile returns a regular file, which is not to be modified.
func (d *dirFS) ReadFile(name string) ([]byte, error) {
	i, err := d.info("read", name)
	if err == nil && !i.mode.IsRegular() {
		err = &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	return d.content[d.files[name].ID], err
}

// ReadDir lists a directory.
func (d *dirFS) ReadDir(name string) ([]fs.DirEntry, error) {
	names, ok := d.dirs[name]
	if !ok {
		if e := d.files[name]; e.Mode == history.ModeDir {
			return nil, nil
		}
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	slices.Sort(names)
	out := make([]fs.DirEntry, 0, len(names))
	for _, base := range names {
		i, err := d.info("readdir", path.Join(name, base))
		if err != nil {
			return nil, err
		}
		out = append(out, fs.FileInfoToDirEntry(i))
	}
	return out, nil
}

// Open is never called.
func (d *dirFS) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
}

type dirInfo struct {
	name string
	size int
	mode fs.FileMode
}

func (i dirInfo) Name() string       { return i.name }
func (i dirInfo) Size() int64        { return int64(i.size) }
func (i dirInfo) Mode() fs.FileMode  { return i.mode }
func (i dirInfo) ModTime() time.Time { return time.Time{} }
func (i dirInfo) IsDir() bool        { return i.mode.IsDir() }
func (i dirInfo) Sys() any           { return nil }
