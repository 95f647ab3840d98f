package gitstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"crypto/sha256"

	"github.com/go-git/go-billy/v5/osfs"
)

// stateDir is the program's own directory inside the Git directory that all
// working trees share.
func (r *Repo) stateDir() string { return filepath.Join(r.gitDir, "countersign") }

// lock keeps other processes of this program out until the returned function is
// called. The operating system ends it with the process, so none is ever left
// behind.
func (r *Repo) lock() (unlock func(), err error) { return r.lockFile("lock") }

func (r *Repo) lockFile(name string) (unlock func(), err error) {
	if err := os.MkdirAll(r.stateDir(), 0o777); err != nil {
		return nil, fmt.Errorf("locking the ledger: %w", err)
	}
	f, err := osfs.New(r.stateDir()).OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("locking the ledger: %w", err)
	}
	if err := f.Lock(); err != nil {
		return nil, fmt.Errorf("locking the ledger: %w", errors.Join(err, f.Close()))
	}
	return func() { _ = f.Close() }, nil
}

// shortName is a file name for what a file is about.
func shortName(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%s\n", p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// writeState replaces a file whole; it is on the disk when it has its name. One
// process at a time, which holds the lock.
func writeState(file string, data []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	tmp := file + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}
