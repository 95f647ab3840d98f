package storetest

import (
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// InOrder is the history of a ledger whose transactions were recorded one after another in the
// order of their ids, in commits that say nothing of when that was.
type InOrder struct{ Tree fs.FS }

// Commits visits one for each transaction.
func (h InOrder) Commits(visit func(history.Commit)) error {
	ids, err := lookup.IDs(h.Tree)
	for i, id := range ids {
		visit(history.Commit{Age: len(ids) - 1 - i, Changes: []history.Change{{Path: ledger.Dir(id) + "/" + ledger.EventsFile}}})
	}
	return err
}

// Blob has nothing.
func (InOrder) Blob(history.ID) ([]byte, error) { return nil, fs.ErrNotExist }

// Former has nothing.
func (InOrder) Former(string) (map[string]history.Entry, error) { return nil, nil }
