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
	gone := deleted(files)
	var errs []error
	for i, f := range files {
		var err error
		if out[i], err = t.state(f, gone); err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", patch.Quote(f.Path), plain(err)))
		}
	}
	return out, errors.Join(errs...)
}

// deleted returns the paths that a change removes.
func deleted(files []patch.Change) map[string]bool {
	gone := map[string]bool{}
	for _, f := range files {
		gone[f.Path] = f.After == nil
	}
	return gone
}

func (t *Tree) state(f patch.Change, gone map[string]bool) (State, error) {
	disk, err := patch.Lookup(t.root.FS(), f.Path)
	var unfit *patch.Error
	switch {
	case errors.As(err, &unfit):
		return Other, nil
	case err != nil:
		return Other, err
	case disk == nil && f.After != nil && !t.free(f.Path, gone):
		return Other, nil
	case t.same(disk, f.Before):
		return Before, nil
	case t.same(disk, f.After):
		return After, nil
	}
	return Other, nil
}

func (t *Tree) same(disk, want *patch.File) bool {
	if disk == nil || want == nil {
		return disk == want
	}
	return bytes.Equal(disk.Data, want.Data) && (t.ignoreMode || disk.Mode == want.Mode)
}

// free tells whether a file can come to a path where there is none now: what is
// in the way, a file above it or a directory of files, the same change removes.
func (t *Tree) free(name string, gone map[string]bool) bool {
	for _, dir := range parents(name) {
		if info, err := t.root.Lstat(dir); err == nil && !info.IsDir() && !gone[dir] {
			return false
		}
	}
	if info, err := t.root.Lstat(name); err != nil || !info.IsDir() {
		return true
	}
	err := fs.WalkDir(t.root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !gone[p] {
			return errInTheWay
		}
		return err
	})
	return err == nil
}

// plain drops the operation and path that a caller has said already.
func plain(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
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
