package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
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

// refsBelow returns the refs in a directory such as "refs/replace", with what they
// stand for; a symbolic one, or one whose file is damaged, stands for zero.
//
// go-git takes the lock that git-pack-refs(1) holds on a ref for another ref, and
// fails as it is empty. Files are read before packed-refs: what git moves there
// in between is found there.
func (r *Repo) refsBelow(dir string) (map[string]plumbing.Hash, error) {
	refs := map[string]plumbing.Hash{}
	err := filepath.WalkDir(filepath.Join(r.gitDir, filepath.FromSlash(dir)), func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // git removes what it has packed
		}
		if err != nil || d.IsDir() || strings.HasSuffix(d.Name(), ".lock") {
			return err
		}
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, relErr := filepath.Rel(r.gitDir, file)
		var id plumbing.Hash
		if text := strings.TrimSpace(string(raw)); plumbing.IsHash(text) {
			id = plumbing.NewHash(text)
		}
		refs[filepath.ToSlash(name)] = id
		return errors.Join(err, relErr)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the refs: %w", err)
	}
	packed, err := os.ReadFile(filepath.Join(r.gitDir, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the refs: %w", err)
	}
	for line := range strings.Lines(string(packed)) {
		id, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if _, loose := refs[name]; ok && !loose && plumbing.IsHash(id) && strings.HasPrefix(name, dir+"/") {
			refs[name] = plumbing.NewHash(id)
		}
	}
	return refs, nil
}

// moveRef sets a ref to next if it still is old (zero: absent), with the
// protocol of git itself: <ref>.lock exclusively, look, rename. go-git's
// SetReference ignores that lock and loses updates. ErrMoved says that the ref
// was not old; nothing was changed then. The caller holds r.lock.
func (r *Repo) moveRef(name plumbing.ReferenceName, old, next plumbing.Hash) (err error) {
	file := r.refFile(name)
	note, err := r.note(name, file+".lock", next)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, os.Remove(note)) }()
	if err := takeLock(note, file+".lock"); err != nil {
		return err
	}
	now, err := r.tip(name)
	if err == nil && now != old {
		err = ledger.ErrMoved
	}
	if err == nil {
		if err = os.Rename(file+".lock", file); err != nil {
			err = fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if err != nil {
		_ = os.Remove(file + ".lock")
	}
	return err
}

// note writes what the ref will be to a file of our own. The ref's lock is made
// a link to it, so that a lock which a killed process left behind is known: it
// is the same file as the old note, and nobody else can hold it now.
func (r *Repo) note(name plumbing.ReferenceName, lock string, next plumbing.Hash) (string, error) {
	note := filepath.Join(r.stateDir(), "ref-"+shortName(name.String()))
	mine, err := os.Lstat(note)
	if err == nil {
		if held, err := os.Lstat(lock); err == nil && os.SameFile(mine, held) {
			if err := os.Remove(lock); err != nil {
				return "", err
			}
		}
		// Never written in place: it may be the ref itself by now.
		err = os.Remove(note)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return note, writeState(note, []byte(next.String()+"\n"))
}

// takeLock waits until the lock is ours. git-pack-refs(1) removes the lock's
// directory where that is empty, maybe just after it was made. Where a file
// system has no links, the note is copied, and a lock that a killed process left
// has to be removed by hand.
func takeLock(note, lock string) error {
	for range lockTries {
		err := os.MkdirAll(filepath.Dir(lock), 0o777)
		if err == nil {
			err = os.Link(note, lock)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			err = copyNew(note, lock)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("locking the ledger: %w", err)
		}
		time.Sleep(lockWait)
	}
	return &LockedError{lock}
}

func copyNew(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
