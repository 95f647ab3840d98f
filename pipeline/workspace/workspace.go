// Package workspace is the door to checked-out files. Every access goes through
// an os.Root, so nothing outside the directory can be reached; links at or
// above a touched path are refused, not followed.
package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/rogpeppe/go-internal/lockedfile"
)

// A Tree is a working tree.
type Tree struct {
	root       *os.Root
	stateDir   string
	ignoreMode bool
}

// Open opens the working tree at dir. stateDir is a directory of our own in the
// Git directory, for the lock; ignoreMode leaves the executable bit out of
// comparisons (core.fileMode false).
func Open(dir, stateDir string, ignoreMode bool) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the working tree: %w", err)
	}
	return &Tree{root, stateDir, ignoreMode || runtime.GOOS == "windows"}, nil
}

// Lock waits until no other process applies to this working tree. The system
// releases the lock when a process dies.
func (t *Tree) Lock(context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(t.stateDir, 0o777); err != nil {
		return nil, fmt.Errorf("locking the working tree: %w", err)
	}
	unlock, err = lockedfile.MutexAt(filepath.Join(t.stateDir, "apply.lock")).Lock()
	if err != nil {
		return nil, fmt.Errorf("locking the working tree: %w", err)
	}
	return unlock, nil
}

// A State is what a file on disk is, compared with a change.
type State int

// The states of a file on disk.
const (
	Other  State = iota // neither
	Before              // as the change found it
	After               // as the change leaves it
)

// Inspect compares each file on disk with its Before and After, in order. An
// error is a file that could not be read, never one that differs.
func (t *Tree) Inspect(files []patch.Change) ([]State, error) {
	out := make([]State, len(files))
	var errs []error
	for i, f := range files {
		disk, err := t.lookup(f.Path)
		var unfit *patch.Error
		switch {
		case errors.As(err, &unfit):
		case err != nil:
			errs = append(errs, fmt.Errorf("reading %s: %w", patch.Quote(f.Path), plain(err)))
		case t.same(disk, f.Before):
			out[i] = Before
		case t.same(disk, f.After):
			out[i] = After
		}
	}
	return out, errors.Join(errs...)
}

func (t *Tree) same(disk, want *patch.File) bool {
	if disk == nil || want == nil {
		return disk == want
	}
	return bytes.Equal(disk.Data, want.Data) && (t.ignoreMode || disk.Mode == want.Mode)
}

func (t *Tree) lookup(name string) (*patch.File, error) {
	f, err := patch.Lookup(t.root.FS(), name)
	if f == nil && err == nil {
		if info, statErr := t.root.Lstat(name); statErr == nil && info.IsDir() && !t.isEmptyDir(name) {
			return nil, &patch.Error{Path: name, Message: "is a directory"}
		}
	}
	return f, err
}

func (t *Tree) isEmptyDir(name string) bool {
	entries, err := fs.ReadDir(t.root.FS(), name)
	return err == nil && len(entries) == 0
}

// plain drops the operation and path that a caller has said already.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// parents returns the directories above a path, nearest first.
func parents(name string) []string {
	var out []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		out = append(out, dir)
	}
	return out
}
