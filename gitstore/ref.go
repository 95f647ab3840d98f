package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/go-git/go-git/v5/plumbing"
)

// A LockedError is a ref that another process holds, or one that died left
// locked.
type LockedError struct{ File string }

func (e *LockedError) Error() string { return "the ledger is locked by " + e.File }

// lockTries and lockWait bound how long a locked ref is waited for: about five
// seconds. A holder keeps the lock for as long as one small write takes.
var lockTries = 200 // tests that leave a lock behind do not wait

const lockWait = 25 * time.Millisecond

func (r *Repo) refFile(name plumbing.ReferenceName) string {
	return filepath.Join(r.gitDir, filepath.FromSlash(name.String()))
}

// tip returns the commit that a ref names, zero where there is no such ref.
//
// go-git takes a loose ref that it cannot read for an absent one and goes on to
// packed-refs. A ledger with a damaged ref must not look empty, or old.
func (r *Repo) tip(name plumbing.ReferenceName) (plumbing.Hash, error) {
	raw, err := os.ReadFile(r.refFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return r.packedTip(name)
	}
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading %s: %w", name, err)
	}
	text := strings.TrimRight(string(raw), " \t\r\n")
	if strings.HasPrefix(text, "ref:") {
		return plumbing.ZeroHash, fmt.Errorf("%s is a symbolic ref, which a ledger may not be", name)
	}
	if !plumbing.IsHash(text) {
		return plumbing.ZeroHash, fmt.Errorf("reading %s: the file %s is damaged", name, r.refFile(name))
	}
	return plumbing.NewHash(text), nil
}

func (r *Repo) packedTip(name plumbing.ReferenceName) (plumbing.Hash, error) {
	ref, err := r.git.Storer.Reference(name)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading %s: %w", name, err)
	}
	return ref.Hash(), nil
}

// moveRef sets a ref to next if it still is old (zero: absent), with the
// protocol of git itself: create <ref>.lock exclusively, look, write, rename.
// go-git's SetReference ignores that lock and loses updates. ErrMoved says that
// the ref was not old; nothing was changed then.
func (r *Repo) moveRef(name plumbing.ReferenceName, old, next plumbing.Hash) (err error) {
	file := r.refFile(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	lock, err := takeLock(file + ".lock")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
			_ = os.Remove(file + ".lock")
		}
	}()
	now, err := r.tip(name)
	if err != nil {
		return err
	}
	if now != old {
		return pipeline.ErrMoved
	}
	if _, err = fmt.Fprintln(lock, next); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err = lock.Sync(); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err = lock.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err = os.Rename(file+".lock", file); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

func takeLock(file string) (*os.File, error) {
	for range lockTries {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			if err != nil {
				return nil, fmt.Errorf("locking the ledger: %w", err)
			}
			return f, nil
		}
		time.Sleep(lockWait)
	}
	return nil, &LockedError{file}
}
