package workspace

import (
	"errors"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// Predict is the report of a write in which everything goes well.
func Predict(files []patch.Change) []result.Operation {
	ops := make([]result.Operation, len(files))
	_ = inParallel(workers(), len(files), func(i int) error {
		ops[i] = succeeded(files[i])
		return nil
	})
	return ops
}

func succeeded(f patch.Change) result.Operation {
	op := result.Operation{
		Op: operation(f), Path: f.Path, Status: result.StatusSuccess, BeforeHash: f.Before.Sum(), AfterHash: f.After.Sum(),
	}
	if f.After != nil {
		op.BytesWritten = int64(len(f.After.Data))
	}
	return op
}

// skipped is the report of a file that was not written after all.
func skipped(op result.Operation) result.Operation {
	op.Status, op.AfterHash, op.BytesWritten = result.StatusSkipped, nil, 0
	return op
}

func failed(op result.Operation, message string) result.Operation {
	op = skipped(op)
	op.Status, op.Error = result.StatusError, message
	return op
}

// operation is APPLY_SPEC's word for a change: a mode change is a modify.
func operation(f patch.Change) string {
	switch {
	case f.Before == nil:
		return "create"
	case f.After == nil:
		return "delete"
	}
	return "modify"
}

var errMismatch = errors.New("the file is not what was written")

// Mismatch is the error of an operation whose file, read back, is not what was
// written. It is worse than one that could not be written: something else is
// there than anybody approved.
const Mismatch = "read back: the file is not what was written"
