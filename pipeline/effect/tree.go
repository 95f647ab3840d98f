package effect

import (
	"runtime"

	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/result"
)

// A State is what a file on disk is, compared with a change.
type State int

// The states of a file on disk.
const (
	Other  State = iota // neither
	Before              // as the change found it
	After               // as the change leaves it
)

// A Reader returns the files of the working tree as Git would store them, nil
// where there is none. base is what the commit has there, for the mode where the
// file system does not tell.
type Reader func(name string, base *patch.File) (*patch.File, error)

// A LimitedReader is a Reader that does not read a file which Git would store as more
// than most bytes beyond base's: that is a *gitpatch.TooLargeError.
type LimitedReader func(name string, base *patch.File, most int64) (*patch.File, error)

// Predict is the report of a write in which everything goes well.
func Predict(files []patch.Change) []result.Operation {
	ops := make([]result.Operation, len(files))
	_ = parallel.Try(2*runtime.GOMAXPROCS(0), len(files), func(i int) error {
		f := files[i]
		op := result.Operation{
			Op: "modify", Path: f.Path, Status: result.StatusSuccess, BeforeHash: f.Before.Sum(), AfterHash: f.After.Sum(),
		}
		switch { // APPLY_SPEC's words: a mode change is a modify
		case f.Before == nil:
			op.Op = "create"
		case f.After == nil:
			op.Op = "delete"
		}
		if f.After != nil {
			op.BytesWritten = int64(len(f.After.Data))
		}
		ops[i] = op
		return nil
	})
	return ops
}

// Mismatch is the error of an operation whose file, read back, is not what was
// written. It is worse than one that could not be written: something else is
// there than anybody approved.
const Mismatch = "read back: the file is not what was written"
