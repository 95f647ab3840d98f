package workspace

import (
	"errors"

	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// Write brings every file to its After. New content is first written to
// temporary files beside their targets; only when all of it is on disk are
// files removed and renamed into place, so a full disk or a directory that may
// not be written leaves the tree as it was. Each file is read back; one that is
// not what it should be is an error, whatever was written.
//
// A file that has its After already (an apply that was cut off) is left alone
// and reported as done. The caller holds the Lock.
func (t *Tree) Write(files []patch.Change) []result.Operation {
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
		case s.state == After:
			w.ops[i] = w.done[i]
		case s.state == Other:
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
		case s.state == Other:
			w.fail(&fileError{i, "read back", errMismatch})
		case w.ops[i].Status == result.StatusSkipped:
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

// Mismatch is the error of an operation whose file, read back, is not what was
// written. It is worse than one that could not be written: something else is
// there than anybody approved.
const Mismatch = "read back: the file is not what was written"
