package session

import (
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/disposition"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Disposition is what a transaction says of an exception, nil if it is about a change. One that does not verify is an error.
func Disposition(tree fs.FS, id string) (*disposition.Disposition, error) {
	log, err := lookup.Read(tree, id)
	if err != nil || log.Transaction().Pointers.Proposal != nil {
		return nil, nil // of a log that cannot be read, who looks at it as a change tells
	}
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return nil, err
	}
	d, _, err := disposition.Read(dir, log)
	if err != nil {
		err = &ledger.CorruptError{ID: id, Err: err}
	}
	return d, err
}

// Disposed prints what was found of an exception.
func Disposed(c *console.Console, d disposition.Disposition) error {
	return c.Result(
		console.Document{"transaction_id": d.TransactionID, "about": d.About, "as": d.As, "author": d.Author, "reason": d.Reason, "signed": d.Signature != nil},
		fmt.Sprintf("%s  %s reviewed %s: %s (%s)\n", d.TransactionID, d.Author.Login, d.About, d.As, d.Reason),
	)
}
