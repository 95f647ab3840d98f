package artifact

import (
	"io/fs"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// maxDriftNames is how many files a Drift names.
const maxDriftNames = 5

// Drift is that of a change of touched files; changed are the files that
// differ.
func Drift(from, to string, commits int, changed, touched []string) approval.Drift {
	d := approval.Drift{From: from, To: to, Commits: commits, Files: len(changed), Names: []string{}}
	dirs := map[string]bool{}
	for _, name := range touched {
		dirs[path.Dir(name)] = true
	}
	for _, name := range slices.Sorted(slices.Values(changed)) {
		if !dirs[path.Dir(name)] || slices.Contains(touched, name) {
			continue
		}
		if d.Beside++; d.Beside <= maxDriftNames {
			d.Names = append(d.Names, name)
		}
	}
	return d
}

// DriftDoc asks for the drift of every approval of a log.
func DriftDoc(log *ledger.Log, to string, drift func(from string) approval.Drift) approval.DriftDoc {
	doc := approval.DriftDoc{Schema: approval.Schema(approval.KindDrift), To: to, Since: []approval.Drift{}}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		from := approval.MadeOn(log, *d)
		known := slices.ContainsFunc(doc.Since, func(s approval.Drift) bool { return s.From == from })
		if d.Decision == ledger.Approve && !known {
			doc.Since = append(doc.Since, drift(from))
		}
	}
	return doc
}

// ReadDrift reads what was recorded of drift before an event of a log.
func ReadDrift(tree fs.FS, log *ledger.Log, event int) (approval.DriftDoc, error) {
	id := log.Transaction().TransactionID
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return approval.DriftDoc{}, err
	}
	doc, err := approval.LastDrift(dir, log.Payloads()[:event])
	if err != nil {
		err = &ledger.CorruptError{ID: id, Err: err}
	}
	return doc, err
}
