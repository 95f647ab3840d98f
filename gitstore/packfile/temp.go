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
type tempFile struct{ *os.File }

// createTemp makes a file in a hold's directory. Like all files of objects,
// nobody may write to it later.
func createTemp(dir, prefix string) (tempFile, error) {
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s%016x", prefix, rand.Uint64())), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	return tempFile{f}, err
}

// finish puts the file on the disk and closes it.
func (t tempFile) finish() error { return errors.Join(t.Sync(), t.Close()) }

// remove removes the file unless it has another name by now.
func (t tempFile) remove() error {
	_ = t.Close() // often it is closed already
	if err := os.Remove(t.Name()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
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
