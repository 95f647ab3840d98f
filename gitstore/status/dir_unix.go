//go:build unix

package status

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/index"
)

// fullStat says that lstat tells all that git notes.
const fullStat = true

// A dir is an open directory.
type dir struct {
	file *os.File
	fd   int
}

func openRoot(name string) (*dir, error) {
	f, err := os.OpenFile(name, unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &dir{f, int(f.Fd())}, nil
}

func (d *dir) close() { _ = d.file.Close() }

// open opens a directory in this one; a link is none.
func (d *dir) open(name string) (*dir, error) {
	fd, err := d.openat(name, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &dir{os.NewFile(uintptr(fd), name), fd}, nil
}

func (d *dir) openat(name string, flags int) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|flags, 0)
		return err
	})
	return fd, err
}

func retry(do func() error) error {
	for {
		if err := do(); err != unix.EINTR {
			return err
		}
	}
}

// isAbsent reports whether an error says that there is no such file or
// directory, but at most something else in its place.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func (d *dir) list() ([]fs.DirEntry, error) { return d.file.ReadDir(-1) }

func (d *dir) lstat(name []byte) (look, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(d.fd, string(name), &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return look{}, err
	}
	return look{uint32(st.Mode), st.Size, index.Stat{
		CtimeSec: uint32(st.Ctim.Sec), CtimeNsec: uint32(st.Ctim.Nsec), MtimeSec: uint32(st.Mtim.Sec), MtimeNsec: uint32(st.Mtim.Nsec),
		Dev: uint32(st.Dev), Ino: uint32(st.Ino), UID: st.Uid, GID: st.Gid, Size: size32(st.Size),
	}}, nil
}

// blobID is the id that the content of a file has as a blob.
func (d *dir) blobID(name string, kind uint32, size int64) (id plumbing.Hash, err error) {
	if kind == typeLink {
		buf := make([]byte, size+1)
		n, err := unix.Readlinkat(d.fd, name, buf)
		if err != nil {
			return id, err
		}
		return hashBlob(strings.NewReader(string(buf[:n])), int64(n))
	}
	f, err := d.openFile(name)
	if err != nil {
		return id, err
	}
	defer f.Close()
	return hashBlob(f, size)
}

// openFile opens a regular file.
func (d *dir) openFile(name string) (*os.File, error) {
	fd, err := d.openat(name, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is no longer a regular file"), err, f.Close())
	}
	return f, nil
}

func (d *dir) read(name string) ([]byte, error) {
	f, err := d.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
