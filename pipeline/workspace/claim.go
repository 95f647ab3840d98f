package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// A Claim remembers, across a crash, which apply was begun in this working
// tree. The ledger says that one was begun, but a ledger is shared; only the
// working tree knows that it was here. It is used under the Lock.
type Claim struct {
	tree *Tree
	file string
}

// Claim returns the working tree's claim.
func (t *Tree) Claim() Claim { return Claim{t, t.stateFile("applying", "")} }

// Begin notes that an apply begins here, before the ledger is told.
func (c Claim) Begin(apply string) error {
	if err := c.tree.note(c.file, []byte(apply+"\n")); err != nil {
		return fmt.Errorf("noting the apply: %w", err)
	}
	return nil
}

// Begun returns the apply that was begun here and has not ended, "" if none.
func (c Claim) Begun() (string, error) {
	data, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the noted apply: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// End notes that the apply has ended, after the ledger was told.
func (c Claim) End() error {
	if err := os.Remove(c.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("noting the end of the apply: %w", err)
	}
	return nil
}
