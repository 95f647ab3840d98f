package workspace

import (
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// Predict is the report of a write in which everything goes well.
func Predict(files []patch.Change) []result.Operation {
	ops := make([]result.Operation, 0, len(files))
	for _, f := range files {
		ops = append(ops, succeeded(f))
	}
	return ops
}

func succeeded(f patch.Change) result.Operation {
	op := skipped(f)
	op.Status, op.AfterHash = result.StatusSuccess, f.After.Sum()
	if f.After != nil {
		op.BytesWritten = int64(len(f.After.Data))
	}
	return op
}

func failed(f patch.Change, message string) result.Operation {
	op := skipped(f)
	op.Status, op.Error = result.StatusError, message
	return op
}

func skipped(f patch.Change) result.Operation {
	return result.Operation{Op: operation(f), Path: f.Path, Status: result.StatusSkipped, BeforeHash: f.Before.Sum()}
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
