package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// The ledger says that an apply was begun, but a ledger is shared; only the
// working tree knows that it was here, and remembers it across a crash. The
// caller holds the Lock.

// Begin notes that applies begin here, before the ledger is told.
func (t *Tree) Begin(applies ...string) error {
	return t.renote("noting the apply", func(noted []string) []string {
		return slices.Compact(slices.Sorted(slices.Values(append(noted, applies...))))
	})
}

// Begun returns the applies that were begun here and have not ended.
func (t *Tree) Begun() ([]string, error) {
	data, err := os.ReadFile(t.claims())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the noted applies: %w", err)
	}
	return strings.Fields(string(data)), nil
}

// End notes that applies have ended, after the ledger was told.
func (t *Tree) End(applies ...string) error {
	return t.renote("noting the end of the apply", func(noted []string) []string {
		return slices.DeleteFunc(noted, func(a string) bool { return slices.Contains(applies, a) })
	})
}

func (t *Tree) claims() string { return t.stateFile("applying", "") }

func (t *Tree) renote(doing string, change func([]string) []string) error {
	noted, err := t.Begun()
	if err != nil {
		return err
	}
	now := change(slices.Clone(noted))
	switch {
	case slices.Equal(now, noted):
		return nil
	case len(now) == 0:
		err = os.Remove(t.claims())
	default:
		err = t.note(t.claims(), []byte(strings.Join(now, "\n")+"\n"))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
