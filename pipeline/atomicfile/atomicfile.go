// Package atomicfile puts files in place whole, or not at all.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Write writes a file, in the place of one that is there, and returns when it and
// its name are on disk. Its owner alone may read it.
func Write(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".countersign-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(name))
}

// Place calls write for a new file below root, which has the name temp, and then
// gives it the name that it is to have. After an error it is gone.
func Place(root *os.Root, f *os.File, temp, name string, write func(*os.File) error) error {
	err := errors.Join(write(f), f.Close())
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	return err
}

// SyncDir has the names in a directory on disk, where the file system knows how.
func SyncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(Sync(dir), dir.Close())
}

// DirsSync says that the system may sync a directory.
const DirsSync = runtime.GOOS != "windows"

// Sync is SyncDir for a directory that is open.
func Sync(dir *os.File) error {
	err := dir.Sync()
	if !DirsSync || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
