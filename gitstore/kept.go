package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// keptFile is a file of the program's own about this ledger, of a kind.
func (l *Ledger) keptFile(kind string) string {
	return filepath.Join(l.repo.stateDir(), kind, shortName(string(l.ref))+".json")
}

// ReadKept returns what WriteKept kept of a kind, which is a plain word; nil for nothing.
// Whoever can write to the Git directory can have written it.
func (l *Ledger) ReadKept(kind string) ([]byte, error) {
	raw, err := os.ReadFile(l.keptFile(kind))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// WriteKept keeps something about this ledger in the clone, in the place of what was kept
// of its kind before; in one that cannot be written, nothing.
func (l *Ledger) WriteKept(kind string, data []byte) error {
	unlock, err := l.repo.lock()
	if err == nil {
		err = writeState(l.keptFile(kind), data)
		unlock()
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

// SeenAt is the tip that was last seen of the ledger of a remote, "" for none. What
// remembers it and cannot be read is an error.
func (l *Ledger) SeenAt(at Place) (string, error) {
	tip, err := l.repo.memory(fmt.Sprintf("%s of %s", l.ref, at.Of), packfile.None).read()
	return hexOf(tip), err
}
