package gitstore

import "testing"

// ImpatientLocks makes a locked ref an error at once.
func ImpatientLocks(t *testing.T) {
	old := lockTries
	lockTries = 2
	t.Cleanup(func() { lockTries = old })
}
