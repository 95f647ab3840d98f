package packapply

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/pack"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// A tree is where operations take place: the disk, or a dry run's forecast of
// it. Both obey one operate, so that they cannot differ in the rules.
type tree interface {
	// look tells what is at a name. Where nothing can be, nothing is.
	look(name string) (entry, error)
	// put makes a file, and the directories above it, or replaces the file
	// that before describes.
	put(name, content string, before entry) error
	remove(name string) error
}

// An entry is what is at a name.
type entry struct {
	kind kind
	perm fs.FileMode // of a file
	hash *string     // of a file that can be read
}

type kind int

const (
	nothing kind = iota
	file
	directory
	special // a device, a pipe, or a link that got there since the target was checked
)

// operate carries out one operation (APPLY_SPEC 5). Its report always comes back.
func operate(t tree, o pack.Operation) result.Operation {
	// The rules of patch.json let "a/./b" through, and lone surrogates, for
	// which no file system has a name.
	name := path.Clean(strings.ToValidUTF8(o.Path, "\uFFFD"))
	before, err := t.look(name)
	r := result.Operation{Op: o.Op, Path: o.Path, Status: result.StatusError, BeforeHash: before.hash}
	if why := misfit(o.Op, before.kind); err == nil && why != "" {
		r.Error = why + ": " + o.Path
		return r
	}
	switch {
	case err != nil:
	case o.Content == nil:
		err = t.remove(name)
	default:
		err = t.put(name, *o.Content, before)
	}
	if err != nil {
		r.Error = "cannot write: " + o.Path
		return r
	}
	r.Status = result.StatusSuccess
	if o.Content != nil {
		sum := canon.Sum([]byte(*o.Content))
		r.AfterHash, r.BytesWritten = &sum, int64(len(*o.Content))
	}
	return r
}

// misfit is why an operation cannot be done to what is there (APPLY_SPEC 9.2).
func misfit(op string, k kind) string {
	switch {
	case op == "create" && k != nothing:
		return "file already exists"
	case op == "create" || k == file:
		return ""
	case k == nothing:
		return "file does not exist"
	case k == directory:
		return "path is a directory"
	}
	return "cannot write"
}

// absent reports whether an error says that nothing is at a name: also below a
// file, and at a name that is too long to be.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
