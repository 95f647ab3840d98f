package packfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// lockName is the file that is locked in a directory of this package's: by who
// writes a pack there (hold), or by who uses a removable directory.
const lockName = "lock"

// OpenRemovable opens an objects directory that is a cache, which it makes if
// need be. [Remove] leaves the directory alone while the Store is reachable and
// its process alive. One that may only be read is opened all the same.
func OpenRemovable(objectsDir string) (*Store, error) {
	for range maxLocks {
		if err := os.MkdirAll(objectsDir, 0o777); err != nil {
			return nil, err
		}
		lock, err := lockShared(objectsDir)
		if err != nil && !isReadOnly(err) {
			return nil, err
		}
		if lock == nil && err == nil { // it was removed just now
			continue
		}
		s, err := Open(objectsDir)
		if err != nil {
			if lock != nil {
				err = errors.Join(err, lock.Close())
			}
			return nil, err
		}
		s.dirs[0].removable, s.dirs[0].lock = true, lock
		return s, nil
	}
	return nil, fmt.Errorf("%s is removed again and again", objectsDir)
}

// Remove removes a removable directory with all that is in it, unless somebody
// uses it, in this process or another.
func Remove(objectsDir string) error {
	lock, err := lockFile(objectsDir, os.O_RDWR|os.O_CREATE, (*flock.Flock).TryLock)
	if lock != nil {
		removeLocked(objectsDir, lock)
	}
	return err
}

// maxLocks bounds how often a directory is locked that others remove.
const maxLocks = 100

// lockShared keeps a directory from being removed until the lock is closed, its
// value is unreachable, or the process ends. It waits while the directory is
// being removed, and returns nil where there is none then. The file may be
// another user's, who lets us only read it.
func lockShared(dir string) (*flock.Flock, error) {
	return lockFile(dir, os.O_RDONLY|os.O_CREATE, func(f *flock.Flock) (bool, error) { return true, f.RLock() })
}

// lockFile returns nil where the lock cannot be had, or where the directory is
// gone, which its last owner removed under its own lock.
func lockFile(dir string, flags int, take func(*flock.Flock) (bool, error)) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, lockName), flock.SetFlag(flags), flock.SetPermissions(0o666))
	ours, err := take(lock)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !ours {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	locked, err := lock.Stat()
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if named, err := os.Stat(lock.Path()); err != nil || !os.SameFile(locked, named) {
		return nil, lock.Close()
	}
	return lock, nil
}

// use locks a removable directory before it is looked into. Where a lock can
// neither be found nor made, as on a disk that is only read, there is none.
// The caller holds d.mu.
func (d *dir) use() (err error) {
	if !d.removable || d.lock != nil {
		return nil
	}
	d.lock, err = lockShared(d.path)
	if isReadOnly(err) {
		return nil
	}
	return err
}

func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
