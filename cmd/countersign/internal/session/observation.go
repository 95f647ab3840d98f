package session

import (
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Observation is the one that a transaction has, nil if it is about a change. One that does not verify is an error.
func Observation(tree fs.FS, id string) (observation.Observation, error) {
	log, err := lookup.Read(tree, id)
	if err != nil || log.Transaction().Pointers.Proposal != nil {
		return nil, nil // of a log that cannot be read, who looks at it as a change tells
	}
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return nil, err
	}
	o, _, err := observation.Read(dir, log)
	if err != nil {
		err = &ledger.CorruptError{ID: id, Err: err}
	}
	return o, err
}

// Observed prints an observation.
func Observed(c *console.Console, o observation.Observation) error {
	id, who := o.Base().TransactionID, o.Base().Author
	doc := console.Document{"transaction_id": id, "author": who}
	switch o := o.(type) {
	case *observation.Disposition:
		doc["about"], doc["as"], doc["reason"], doc["signed"] = o.About, o.As, o.Reason, o.Signature != nil
		return c.Result(doc, fmt.Sprintf("%s  %s reviewed %s: %s (%s)\n", id, who.Login, o.About, o.As, o.Reason))
	case *observation.Deployment:
		doc["commit"], doc["environment"], doc["deployed_at"], doc["url"] = o.Commit, o.Environment, o.DeployedAt, o.URL
	case *observation.Settings:
		doc["repository"], doc["branch"], doc["read_at"], doc["rules"], doc["unread"] = o.Repository, o.Branch, o.ReadAt, o.Rules, o.Unread
	}
	return c.Result(doc, fmt.Sprintf("%s  %s %s\n", id, who.Login, o.Words()))
}
