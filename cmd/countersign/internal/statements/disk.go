package statements

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A disk is the target as it is.
type disk struct{ root *os.Root }

func (d disk) look(name string) (entry, error) {
	info, err := d.root.Lstat(name)
	switch {
	case err != nil && absent(err):
		return entry{}, nil
	case err != nil:
		return entry{}, err
	case info.IsDir():
		return entry{kind: directory}, nil
	case !info.Mode().IsRegular():
		return entry{kind: special}, nil
	}
	return entry{file, info.Mode().Perm(), d.hash(name)}, nil
}

// hash is the SHA-256 of a file's bytes (APPLY_SPEC 7.2), nil if it cannot be
// read.
func (d disk) hash(name string) *string {
	f, err := d.root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil
	}
	sum := "sha256:" + hex.EncodeToString(h.Sum(nil))
	return &sum
}

func (d disk) remove(name string) error { return d.root.Remove(name) }

func (d disk) put(name, content string, before entry) error {
	dir, made, err := d.parent(path.Dir(name))
	if err == nil {
		err = errors.Join(replace(dir, path.Base(name), content, before), dir.Close())
	}
	if err == nil {
		return nil
	}
	// Directories that were made in vain go again. One that is no longer empty, or
	// that something else has taken the place of, is somebody else's now.
	for _, name := range slices.Backward(made) {
		if info, err := d.root.Lstat(name); err == nil && info.IsDir() {
			_ = d.root.Remove(name)
		}
	}
	return err
}

// parent opens a directory. Where it is missing it is made; made are the
// directories that were, each after those above it.
func (d disk) parent(name string) (dir *os.Root, made []string, err error) {
	if dir, err = d.enter(name); !errors.Is(err, fs.ErrNotExist) {
		return dir, nil, err
	}
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		err := d.root.Mkdir(name[:i], 0o777)
		if err == nil {
			made = append(made, name[:i])
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, made, err
		}
	}
	dir, err = d.enter(name)
	return dir, made, err
}

// enter opens a directory. With "/." a pipe in its place is an error; without,
// opening it would wait for a writer.
func (d disk) enter(name string) (*os.Root, error) { return d.root.OpenRoot(name + "/.") }

// replace writes a file beside its place, then renames it. The directory is
// held open: it stays the same one, whatever its name comes to mean.
func replace(dir *os.Root, name, content string, before entry) error {
	perm := fs.FileMode(0o666)
	if before.kind == file {
		perm = before.perm
	}
	var f *os.File
	var temp string
	err := fs.ErrExist
	for n := 0; errors.Is(err, fs.ErrExist); n++ { // until a name is free
		temp = fmt.Sprintf(".countersign-%d.tmp", n)
		f, err = dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	}
	if err != nil {
		return err
	}
	return atomicfile.Place(dir, f, temp, name, func(f *os.File) error {
		_, err := f.WriteString(content)
		if before.kind == file {
			err = errors.Join(err, f.Chmod(before.perm)) // what the umask took
		}
		return err
	})
}

// A forecast is the target as the operations so far would have left it (APPLY_SPEC
// 6). It only ever reads.
type forecast struct {
	disk    disk
	dir     string           // where the target is, to ask for permissions
	changed map[string]entry // by name; what is removed is nothing
}

var errInTheWay = errors.New("something in the way is not a directory")

func (f forecast) look(name string) (entry, error) {
	if e, known := f.changed[name]; known {
		return e, nil
	}
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if e, known := f.changed[above]; known && e.kind != directory {
			return entry{}, nil
		}
	}
	return f.disk.look(name)
}

func (f forecast) put(name, content string, before entry) error {
	made := []string{name}
	dir := path.Dir(name)
	for ; dir != "."; dir = path.Dir(dir) {
		e, err := f.look(dir)
		if err != nil {
			return err
		}
		if e.kind == directory {
			break
		}
		if e.kind != nothing {
			return errInTheWay
		}
		made = append(made, dir)
	}
	if err := f.allowed(dir, made); err != nil {
		return err
	}
	for _, above := range made[1:] {
		f.changed[above] = entry{kind: directory}
	}
	sum := canon.Sum([]byte(content))
	f.changed[name] = entry{file, before.perm, &sum}
	return nil
}

func (f forecast) remove(name string) error {
	if err := f.allowed(path.Dir(name), nil); err != nil {
		return err
	}
	f.changed[name] = entry{}
	return nil
}

// allowed asks whether names can come into an existing directory, or go from it.
func (f forecast) allowed(dir string, names []string) error {
	_, ours := f.changed[dir]
	if !ours && !writable(filepath.Join(f.dir, filepath.FromSlash(dir))) {
		return syscall.EACCES
	}
	for _, name := range names {
		if _, err := f.disk.root.Lstat(path.Base(name)); errors.Is(err, syscall.ENAMETOOLONG) {
			return err
		}
	}
	return nil
}
