package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// recover clears away what a Write that was cut off left behind.
func (t *Tree) recover() error {
	if err := os.Remove(t.journalFile() + unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	line, err := os.ReadFile(t.journalFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var j journal
	if err == nil {
		err = canon.Unmarshal(line, &j)
	}
	if err == nil {
		err = j.check()
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", t.journalFile(), plain(err))
	}
	return t.sweep(j)
}

// sweep removes temporary files, new directories that are empty, and the
// journal when there is nothing left for it to name.
func (t *Tree) sweep(j journal) error {
	err := inParallel(t.workers, len(j.Directories), func(i int) error { return t.sweepDir(j, j.Directories[i]) })
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(j.Made) {
		t.removeDir(dir)
	}
	return t.dropJournal()
}

func (t *Tree) dropJournal() error {
	t.changing()
	return os.Remove(t.journalFile())
}

func (t *Tree) sweepDir(j journal, name string) error {
	dir, at, err := t.reach(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLink) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	if at != name {
		return nil
	}
	names, err := list(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(n, j.Prefix) && strings.HasSuffix(n, tempSuffix) {
			t.changing()
			err = errors.Join(err, dir.Remove(n))
		}
	}
	return err
}

func list(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
