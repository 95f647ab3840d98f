package packfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
)

// tempFile is a file that has no name of its own yet.
type tempFile struct {
	*os.File
	done bool // it has one, or is gone
}

// createTemp makes a file in dir, which it makes too if need be. Its name is
// one that git takes for a leftover when it is old (gc.pruneExpire); like all
// files of objects, nobody may write to it later.
func createTemp(dir, prefix string) (*tempFile, error) {
	for range 100 {
		name := filepath.Join(dir, fmt.Sprintf("%s%016x", prefix, rand.Uint64()))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
		switch {
		case err == nil:
			return &tempFile{File: f}, nil
		case errors.Is(err, fs.ErrNotExist):
			if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		}
	}
	return nil, fmt.Errorf("no temporary file can be made in %s", dir)
}

// writeTemp makes a file that is on the disk.
func writeTemp(dir, prefix string, data []byte) (*tempFile, error) {
	t, err := createTemp(dir, prefix)
	if err != nil {
		return nil, err
	}
	if _, err = t.Write(data); err == nil {
		err = t.finish()
	}
	if err != nil {
		return nil, errors.Join(err, t.remove())
	}
	return t, nil
}

// finish puts the file on the disk and closes it.
func (t *tempFile) finish() error { return errors.Join(t.Sync(), t.Close()) }

// remove removes the file unless it has its name.
func (t *tempFile) remove() error {
	if t.done {
		return nil
	}
	t.done = true
	_ = t.Close() // often it is closed already
	return os.Remove(t.Name())
}

// install gives the file its name. What has that name holds the same content;
// where it cannot be replaced, it stays (on Windows, one that is open).
func install(t *tempFile, name string) error {
	err := os.Rename(t.Name(), name)
	if err == nil {
		t.done = true
		return nil
	}
	if _, old := os.Stat(name); old == nil && errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return errors.Join(err, t.remove())
}

// syncPath puts a file, or the names in a directory, on the disk. Windows has no
// such call for what is only open to be read.
func syncPath(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
