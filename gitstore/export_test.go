package gitstore

import (
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// ImpatientLocks makes a locked ref an error at once.
func ImpatientLocks(t *testing.T) {
	old := lockTries
	lockTries = 2
	t.Cleanup(func() { lockTries = old })
}

// LeaveLocked does what a process does that is killed while it holds the lock
// of the ledger's ref.
func (l *Ledger) LeaveLocked(t *testing.T) {
	lock := l.repo.refFile(l.ref) + ".lock"
	note, err := l.repo.note(l.ref, lock, plumbing.ZeroHash)
	if err == nil {
		err = takeLock(note, lock)
	}
	if err != nil {
		t.Fatal(err)
	}
}
