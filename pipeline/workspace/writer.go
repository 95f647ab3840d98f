package workspace

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

type writer struct {
	*Tree
	files  []patch.Change
	gone   map[string]bool
	done   []ledger.Operation // what to report of a file that is as it should be
	ops    []ledger.Operation
	seen   []sight  // what check saw
	waits  []string // where a file's new content waits: its directory, or one above while a file is in the way
	placed []bool   // whether the disk was changed

	disks    disks
	journal  journal
	recorded bool // the journal is on disk
	oneByOne bool // each file is synced by itself
	failed   bool
}

func newWriter(t *Tree, files []patch.Change) *writer {
	w := &writer{
		Tree: t, files: files, gone: deleted(files), done: effect.Predict(files),
		ops: make([]ledger.Operation, len(files)), waits: make([]string, len(files)), placed: make([]bool, len(files)),
	}
	for i := range files {
		w.ops[i] = skipped(w.done[i])
	}
	return w
}

// A fileError is what stops a Write, and at which file.
type fileError struct {
	index int
	doing string
	err   error
}

func (e *fileError) Error() string { return e.doing + ": " + plain(e.err).Error() }

// fail reports a *fileError with its file, any other error with the first file
// that is still to be done.
func (w *writer) fail(err error) {
	var e *fileError
	if !errors.As(err, &e) {
		e = &fileError{max(0, slices.IndexFunc(w.ops, func(op ledger.Operation) bool { return op.Status == ledger.StatusSkipped })), "cannot write", err}
	}
	w.ops[e.index] = failed(w.done[e.index], e.Error())
	w.failed = true
}

var errChanged = errors.New("the file is not as the approved change found it")

// todo sorts those files into folders that are still to be done: the ones that
// get content, or the ones that go.
func (w *writer) todo(going bool) []folder {
	return folders(w.files, func(i int) bool {
		return w.ops[i].Status == ledger.StatusSkipped && w.gone[w.files[i].Path] == going
	})
}

// unchanged looks at a file a last time: it is still the one that check read, as
// far as can be told without reading it again.
func (w *writer) unchanged(info fs.FileInfo, err error, i int) error {
	was := w.seen[i].info
	switch {
	case errors.Is(err, fs.ErrNotExist) && was == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return errChanged
	case err != nil:
		return err
	case was == nil && info.IsDir():
		return nil // empty, or else rename does not replace it
	case was == nil || !os.SameFile(was, info) || was.Mode() != info.Mode() || was.Size() != info.Size() || !was.ModTime().Equal(info.ModTime()):
		return errChanged
	}
	return nil
}

// skipped is the report of a file that was not written after all.
func skipped(op ledger.Operation) ledger.Operation {
	op.Status, op.AfterHash, op.BytesWritten = ledger.StatusSkipped, nil, 0
	return op
}

func failed(op ledger.Operation, message string) ledger.Operation {
	op = skipped(op)
	op.Status, op.Error = ledger.StatusError, message
	return op
}

// Write brings every file to its After. New content is first written to
// temporary files beside their targets; only when all of it is on disk are
// files removed and renamed into place, so a full disk or a directory that may
// not be written leaves the tree as it was. Each file is read back; one that is
// not what it should be is an error, whatever was written.
//
// A file that has its After already (an apply that was cut off) is left alone
// and reported as done. The caller holds the Lock.
func (t *Tree) Write(files []patch.Change) []ledger.Operation {
	w := newWriter(t, files)
	defer w.disks.release()
	w.check()
	if !w.failed {
		w.stage()
	}
	if !w.failed {
		w.place()
	}
	w.readBack()
	w.finish()
	return w.ops
}

// check looks once more, right before the effect, and marks what is done.
func (w *writer) check() {
	if err := w.recover(); err != nil {
		w.fail(err)
		return
	}
	w.seen = w.look(w.files, w.gone)
	for i, s := range w.seen {
		switch {
		case s.err != nil:
			w.fail(&fileError{i, "cannot read", s.err})
		case s.state == effect.After:
			w.ops[i] = w.done[i]
		case s.state == effect.Other:
			w.fail(&fileError{i, "cannot write", errChanged})
		}
	}
}

// readBack reports what is on disk now, not what was sent there. It goes down
// from the root of the working tree again.
func (w *writer) readBack() {
	var index []int
	var files []patch.Change
	for i, f := range w.files {
		if w.placed[i] {
			index = append(index, i)
			files = append(files, patch.Change{Path: f.Path, Before: f.After, After: f.After})
		}
	}
	for n, s := range w.look(files, nil) {
		switch i := index[n]; {
		case s.err != nil:
			w.fail(&fileError{i, "cannot read back", s.err})
		case s.state == effect.Other:
			w.fail(&fileError{i, "read back", errMismatch})
		case w.ops[i].Status == ledger.StatusSkipped:
			w.ops[i] = w.done[i]
		}
	}
}

// finish takes back what a failed Write leaves beside the files it placed. What
// it cannot take back stays in the journal for the next one.
func (w *writer) finish() {
	switch {
	case !w.recorded:
	case w.failed:
		_ = w.sweep(w.journal)
	default:
		_ = w.dropJournal()
	}
}

var errMismatch = errors.New("the file is not what was written")
