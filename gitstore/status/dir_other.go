//go:build !unix

package status

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/index"
)

// fullStat says that lstat tells all that git notes. Here it tells of times only
// when the content was written.
const fullStat = false

// A dir is a directory.
type dir struct{ path string }

func openRoot(name string) (*dir, error) { return &dir{name}, nil }

func (d *dir) close() {}

// open returns a directory in this one; a link is none.
func (d *dir) open(name string) (*dir, error) {
	below := filepath.Join(d.path, name)
	info, err := os.Lstat(below)
	if err == nil && !info.IsDir() {
		err = fs.ErrNotExist
	}
	return &dir{below}, err
}

// isAbsent reports whether an error says that there is no such file or
// directory.
func isAbsent(err error) bool { return os.IsNotExist(err) }

func (d *dir) list() ([]fs.DirEntry, error) { return os.ReadDir(d.path) }

func (d *dir) lstat(name []byte) (look, error) {
	info, err := os.Lstat(filepath.Join(d.path, string(name)))
	if err != nil {
		return look{}, err
	}
	l := look{mode: uint32(info.Mode().Perm()), size: info.Size()}
	switch info.Mode().Type() {
	case 0:
		l.mode |= typeRegular
	case fs.ModeDir:
		l.mode |= typeDir
	case fs.ModeSymlink:
		l.mode |= typeLink
	}
	at := info.ModTime()
	l.Stat = index.Stat{MtimeSec: uint32(at.Unix()), MtimeNsec: uint32(at.Nanosecond()), Size: size32(l.size)}
	return l, nil
}

// blobID is the id that the content of a file has as a blob.
func (d *dir) blobID(name string, kind uint32, size int64) (id plumbing.Hash, err error) {
	if kind == typeLink {
		target, err := os.Readlink(filepath.Join(d.path, name))
		if err != nil {
			return id, err
		}
		target = filepath.ToSlash(target)
		return hashBlob(strings.NewReader(target), int64(len(target)))
	}
	f, err := os.Open(filepath.Join(d.path, name))
	if err != nil {
		return id, err
	}
	defer f.Close()
	return hashBlob(f, size)
}

func (d *dir) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(d.path, name)) }
