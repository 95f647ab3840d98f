// Package workspace is the door to checked-out files. Every access goes through
// an os.Root, so nothing outside the directory can be reached; links at or
// above a touched path are refused, not followed.
//
// # What a crash leaves
//
// Write replaces files by renaming, so that each holds its old or its new
// content at any moment, never a mixture. A process that is killed leaves:
//
//   - before the journal is written: the tree as it was;
//   - while new content is written: the tree as it was, and the temporary files
//     and new directories that the journal names;
//   - while files are removed and renamed into place: some files old, the rest
//     new, and the temporary files of those still to come;
//   - after that: every file new, and a journal that has nothing left to name.
//
// The journal is a file in the state directory. The next Lock, whichever change
// it is for, removes what the journal names; the next Write of the same change
// finds the files that are new already and brings the others to their After.
// That a change is under way at all is for the ledger to say.
//
// A power cut is no worse: new content reaches the disk before its first rename,
// and Write returns only after the names have reached it as well.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// A Tree is a working tree.
type Tree struct {
	root       *os.Root
	stateDir   string // absolute
	ignoreMode bool
	workers    int    // how many goroutines share the work
	step       func() // nil, or called before each change to the disk: tests die there
}

// Open opens the working tree at dir. stateDir is a directory of our own in the
// Git directory, for the lock and the journal; ignoreMode leaves the executable
// bit out of comparisons (core.fileMode false).
func Open(dir, stateDir string, ignoreMode bool) (*Tree, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		stateDir, err = filepath.Abs(stateDir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the working tree: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the working tree: %w", err)
	}
	return &Tree{root: root, stateDir: stateDir, ignoreMode: ignoreMode || runtime.GOOS == "windows", workers: workers()}, nil
}

// Lock waits until no other process applies to this working tree, and clears
// what one that died left behind. The system releases the lock when a process
// dies.
func (t *Tree) Lock(context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(t.stateDir, 0o777); err != nil {
		return nil, fmt.Errorf("locking the working tree: %w", err)
	}
	unlock, err = lockedfile.MutexAt(filepath.Join(t.stateDir, "apply.lock")).Lock()
	if err != nil {
		return nil, fmt.Errorf("locking the working tree: %w", err)
	}
	if err := t.recover(); err != nil {
		unlock()
		return nil, fmt.Errorf("clearing what an interrupted apply left: %w", err)
	}
	return unlock, nil
}

// stateFile is a file of this working tree's own: those that share a Git
// directory share the state directory. Its name tells where the working tree is
// as seen from there, so that both can be moved together.
func (t *Tree) stateFile(kind, ext string) string {
	where, err := filepath.Rel(t.stateDir, t.root.Name())
	if err != nil { // another drive
		where = t.root.Name()
	}
	return filepath.Join(t.stateDir, kind+"-"+canon.Hex([]byte(filepath.ToSlash(where)))[:16]+ext)
}

// Read returns a file, nil if there is none. base is what the commit has there,
// for the mode where the file system does not tell.
func (t *Tree) Read(name string, base *patch.File) (*patch.File, error) {
	f, err := patch.Lookup(t.root.FS(), name)
	if err != nil {
		return nil, err
	}
	if f != nil && t.ignoreMode {
		f.Mode = patch.Regular
		if base != nil {
			f.Mode = base.Mode
		}
	}
	return f, nil
}

func modeOf(info fs.FileInfo) patch.Mode {
	if info.Mode()&0o111 != 0 {
		return patch.Executable
	}
	return patch.Regular
}

func (t *Tree) changing() {
	if t.step != nil {
		t.step()
	}
}

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
