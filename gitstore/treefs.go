package gitstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/pipeline/fault"
)

// treeFS serves a Git tree as a read-only fs.FS with links (fs.ReadLinkFS). An
// object that is missing from the repository is an error that is not
// fs.ErrNotExist: what was merely not fetched must not read as absent. Several
// goroutines may use it.
type treeFS struct {
	store source
	mu    sync.RWMutex
	nodes map[string]*node // directories read so far, by path
}

func newTreeFS(s source, root []treeEntry) (*treeFS, error) {
	n, err := newNode(root)
	return &treeFS{store: s, nodes: map[string]*node{".": n}}, err
}

var (
	_ fs.ReadDirFS  = (*treeFS)(nil)
	_ fs.ReadFileFS = (*treeFS)(nil)
	_ fs.StatFS     = (*treeFS)(nil)
	_ fs.ReadLinkFS = (*treeFS)(nil)
)

func (t *treeFS) fail(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// missing is the error of an object that cannot be read, for whatever reason, which is not told as its cause: that something is not
// there would be the word about a file.
func missing(err error) error {
	return &fault.Error{
		Message: "the object is not in this repository (a partial or damaged clone?): " + err.Error(), Try: "git fetch --refetch --no-filter origin",
	}
}

// dir returns a directory's entries.
func (t *treeFS) dir(name string) (*node, error) {
	t.mu.RLock()
	n, known := t.nodes[name]
	t.mu.RUnlock()
	if known {
		return n, nil
	}
	e, err := t.entry(name)
	if err != nil {
		return nil, err
	}
	if e.mode != filemode.Dir {
		return nil, errNotDir
	}
	entries, err := readTree(t.store, e.id)
	if err != nil {
		return nil, missing(err)
	}
	if n, err = newNode(entries); err != nil {
		return nil, fmt.Errorf("tree %s %w", e.id, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes[name] = n
	return n, nil
}

var errNotDir = errors.New("not a directory")

// node is a directory that was read.
type node struct {
	entries []treeEntry
	byName  map[string]int
}

// newNode refuses what only a crafted tree holds and a walk would trip over:
// names that are no names, and a name twice.
func newNode(entries []treeEntry) (*node, error) {
	n := &node{entries, make(map[string]int, len(entries))}
	for i, e := range entries {
		if _, twice := n.byName[e.name]; twice || !isName(e.name) {
			return nil, fmt.Errorf("has a malformed entry %+q", e.name)
		}
		n.byName[e.name] = i
	}
	return n, nil
}

// isName reports whether something can be found by a name.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// entry returns the tree entry of a path below the root.
func (t *treeFS) entry(name string) (treeEntry, error) {
	dir, base := ".", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir, base = name[:i], name[i+1:]
	}
	parent, err := t.dir(dir)
	if errors.Is(err, errNotDir) {
		return treeEntry{}, fs.ErrNotExist
	}
	if err != nil {
		return treeEntry{}, err
	}
	i, ok := parent.byName[base]
	if !ok {
		return treeEntry{}, fs.ErrNotExist
	}
	return parent.entries[i], nil
}

func (t *treeFS) info(op, name string) (treeInfo, error) {
	if !fs.ValidPath(name) {
		return treeInfo{}, t.fail(op, name, fs.ErrInvalid)
	}
	if name == "." {
		return treeInfo{".", fs.ModeDir | 0o555, 0}, nil
	}
	e, err := t.entry(name)
	if err != nil {
		return treeInfo{}, t.fail(op, name, err)
	}
	i := treeInfo{e.name, modeOf(e.mode), 0}
	if e.mode.IsFile() {
		if _, i.size, err = t.store.Size(e.id); err != nil {
			return treeInfo{}, t.fail(op, name, missing(err))
		}
	}
	return i, nil
}

func modeOf(m filemode.FileMode) fs.FileMode {
	switch m {
	case filemode.Dir:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	case filemode.Executable:
		return 0o755
	case filemode.Regular, filemode.Deprecated:
		return 0o644
	}
	return fs.ModeIrregular
}

// Stat is Lstat: links are never followed.
func (t *treeFS) Stat(name string) (fs.FileInfo, error) { return t.info("stat", name) }

// Lstat describes the entry at a path.
func (t *treeFS) Lstat(name string) (fs.FileInfo, error) { return t.info("lstat", name) }

// ReadLink returns what a link points to.
func (t *treeFS) ReadLink(name string) (string, error) {
	b, err := t.blob("readlink", name, fs.ModeSymlink, fs.ErrInvalid)
	return string(b), err
}

// ReadFile returns a regular file's bytes.
func (t *treeFS) ReadFile(name string) ([]byte, error) {
	return t.blob("read", name, 0, errors.New("not a regular file"))
}

// blob reads what must be of this type.
func (t *treeFS) blob(op, name string, kind fs.FileMode, other error) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, t.fail(op, name, fs.ErrInvalid)
	}
	if name == "." {
		return nil, t.fail(op, name, other)
	}
	e, err := t.entry(name)
	if err != nil {
		return nil, t.fail(op, name, err)
	}
	if modeOf(e.mode).Type() != kind {
		return nil, t.fail(op, name, other)
	}
	b, err := readObject(t.store, plumbing.BlobObject, e.id)
	if err != nil {
		return nil, t.fail(op, name, missing(err))
	}
	return bytes.Clone(b), nil // it is the caller's own
}

// ReadDir lists a directory in name order.
func (t *treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, t.fail("readdir", name, fs.ErrInvalid)
	}
	n, err := t.dir(name)
	if err != nil {
		return nil, t.fail("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(n.entries))
	for i, e := range n.entries {
		out[i] = dirEntry{t, path.Join(name, e.name), treeInfo{e.name, modeOf(e.mode), 0}}
	}
	sortEntries(out)
	return out, nil
}

// Open opens a file or directory.
func (t *treeFS) Open(name string) (fs.File, error) {
	i, err := t.info("open", name)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		entries, err := t.ReadDir(name)
		return &openDir{i, entries}, err
	}
	b, err := t.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &openFile{i, bytes.NewReader(b)}, nil
}

type treeInfo struct {
	name string
	mode fs.FileMode
	size int64
}

func (i treeInfo) Name() string       { return i.name }
func (i treeInfo) Size() int64        { return i.size }
func (i treeInfo) Mode() fs.FileMode  { return i.mode }
func (i treeInfo) Type() fs.FileMode  { return i.mode.Type() }
func (i treeInfo) IsDir() bool        { return i.mode.IsDir() }
func (i treeInfo) ModTime() time.Time { return time.Time{} }
func (i treeInfo) Sys() any           { return nil }

type dirEntry struct {
	fs   *treeFS
	path string
	treeInfo
}

func (e dirEntry) Info() (fs.FileInfo, error) { return e.fs.Lstat(e.path) }

type openFile struct {
	treeInfo
	*bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.treeInfo, nil }
func (f *openFile) Size() int64                { return f.treeInfo.size }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	treeInfo
	rest []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.treeInfo, nil }
func (d *openDir) Close() error               { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 || n > len(d.rest) {
		if n > 0 && len(d.rest) == 0 {
			return nil, io.EOF
		}
		n = len(d.rest)
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out, nil
}

// sortEntries orders by name; Git's own order compares directories as if they
// ended in a slash.
func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}
