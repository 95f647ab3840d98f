package packfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// holdPrefix begins the name of a directory beside git's own, in which one
// Store prepares what it writes, and the text of its .keep files. git removes
// what is called tmp_ something at any time (git-prune(1)), and nothing else.
const holdPrefix = "countersign-"

// hold keeps new packs from `git gc` until a ref leads to what they hold, as
// git-receive-pack(1) does: pack-X.keep is there before pack-X is, and goes
// after the ref has moved. A pack that is there without it when `git repack -d`
// begins may be removed when that ends.
//
// The .keep has the name of a directory with a locked file: the operating
// system ends the lock with the process, and Sweep then removes both. Without
// a pack that is held or being written there is no such directory.
type hold struct {
	objects string

	mu   sync.Mutex
	dir  string // "" while there is none
	lock *flock.Flock
	uses int             // packs that are held or being written
	held map[string]bool // the names of packs; each is a use
}

// begin makes the directory, if there is none. end is to be called once for it.
func (h *hold) begin() (dir string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for try := 0; h.dir == ""; try++ {
		dir := filepath.Join(h.objects, fmt.Sprintf("%s%016x", holdPrefix, rand.Uint64()))
		if err := os.Mkdir(dir, 0o777); err != nil {
			return "", err
		}
		lock, err := lockHold(dir, os.O_RDWR|os.O_CREATE|os.O_EXCL)
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
		if lock != nil {
			h.dir, h.lock = dir, lock
		} else if try == 100 {
			return "", fmt.Errorf("%s cannot be locked", dir)
		}
	}
	h.uses++
	return h.dir, nil
}

// end removes the directory with its last use. What cannot be removed is left
// to Sweep.
func (h *hold) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uses--; h.uses == 0 {
		removeLocked(h.dir, h.lock)
		h.dir, h.lock = "", nil
	}
}

// lockHold returns nil where another process has the lock, or had it and has
// removed the directory. Only who made the directory makes the file, once.
func lockHold(dir string, flags int) (*flock.Flock, error) {
	return lockFile(dir, flags, (*flock.Flock).TryLock)
}

// removeLocked removes the locked file last: until then another can do the rest.
func removeLocked(dir string, lock *flock.Flock) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lockName {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(lock.Path())
	_ = lock.Close()
	if runtime.GOOS == "windows" { // where a file goes only when nobody has it open
		_ = os.Remove(lock.Path())
	}
	_ = os.Remove(dir)
}

// Release lets packs go that WritePack or TakePacks returned: a ref leads to
// their objects now, or nobody wants them.
func (s *Store) Release(names ...string) {
	for _, name := range names {
		s.hold.mu.Lock()
		held := s.hold.held[name]
		delete(s.hold.held, name)
		s.hold.mu.Unlock()
		if held {
			_ = os.Remove(s.keepFile(name)) // one that stays is Sweep's, after this process
			s.hold.end()
		}
	}
}

func (s *Store) keepFile(name string) string {
	return filepath.Join(s.dirs[0].path, "pack", name+".keep")
}

// Sweep releases what processes held that were killed. A .keep of anybody else
// is left alone.
func (s *Store) Sweep() error {
	objects := s.dirs[0].path
	keeps, err := filepath.Glob(filepath.Join(objects, "pack", "*.keep"))
	if err != nil {
		return err
	}
	dirs, err := filepath.Glob(filepath.Join(objects, holdPrefix+"*"))
	if err != nil || len(keeps)+len(dirs) == 0 {
		return err
	}
	byHold := map[string][]string{} // .keep files
	for _, keep := range keeps {
		text, err := os.ReadFile(keep)
		name, line := strings.CutSuffix(string(text), "\n")
		if err != nil || !line || !strings.HasPrefix(name, holdPrefix) || filepath.Base(name) != name {
			continue // somebody else's
		}
		byHold[name] = append(byHold[name], keep)
		dirs = append(dirs, filepath.Join(objects, name))
	}
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, sweep(dir, byHold[filepath.Base(dir)]))
	}
	return errors.Join(errs...)
}

// sweep removes these .keep files and then the directory, if its process is
// gone.
func sweep(dir string, keeps []string) (err error) {
	lock, err := lockHold(dir, os.O_RDONLY)
	if err != nil {
		return err
	}
	if lock == nil { // it is alive, was killed before it locked the directory, or is gone
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	for _, keep := range keeps {
		if removed := os.Remove(keep); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	switch {
	case lock == nil:
	case err != nil: // the next Sweep goes on
		err = errors.Join(err, lock.Close())
	default:
		removeLocked(dir, lock)
	}
	return err
}

// lockName is the file that is locked in a directory of this package's: by who
// writes a pack there (hold), or by who uses a removable directory.
const lockName = "lock"

// OpenRemovable opens an objects directory that is a cache, which it makes if
// need be. [Remove] leaves the directory alone while the Store is reachable and
// its process alive. One that may only be read is opened all the same.
func OpenRemovable(objectsDir string) (*Store, error) {
	for i := range maxLocks {
		// Two processes that make and remove it in step would never get out of step.
		time.Sleep(rand.N(time.Duration(i)*100*time.Microsecond + 1))
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
