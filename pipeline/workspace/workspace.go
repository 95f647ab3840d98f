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
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A Tree is a working tree.
type Tree struct {
	// Attributes is what Git's configuration says of the files; the zero value is a
	// Git without one.
	Attributes git.Attributes

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

// files are the tree's. One that was exchanged for a pipe just before it is read keeps nobody waiting.
func (t *Tree) files() fs.FS { return unwaiting{t.root.FS().(fs.ReadLinkFS), t.root} }

type unwaiting struct {
	fs.ReadLinkFS
	root *os.Root
}

func (u unwaiting) ReadFile(name string) ([]byte, error) {
	file, err := u.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, error(&fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}))
	}
	return io.ReadAll(file)
}

// Read returns a file, nil if there is none. base is what the commit has there,
// for the mode where the file system does not tell.
func (t *Tree) Read(name string, base *patch.File) (*patch.File, error) {
	f, err := patch.Lookup(t.files(), name)
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

func (t *Tree) changing() {
	if t.step != nil {
		t.step()
	}
}

// workers is enough to keep the processors busy while some wait for the disk.
func workers() int { return 2 * runtime.GOMAXPROCS(0) }
