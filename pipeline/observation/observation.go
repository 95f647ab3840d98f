// Package observation is what somebody recorded beside the changes: what became of an exception, that a commit was deployed, what protects a branch. Each is
// an artifact of a transaction of its own, which proposes nothing and is closed at once (rule L26). None decides anything: what was
// approved and what accounts for a commit does not depend on it. The package is pure.
package observation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// An Observation is one of the artifacts. Base has what all of them have, Kind is that of the artifact, and Words is one line that says it.
type Observation interface {
	Base() *Head
	Kind() string
	Words() string
	// Check is an error unless what it says has its form, and can be recorded at a time.
	Check(at time.Time) error
}

// A Head is what all observations have. TransactionID is the one that an observation is in, Author who began that.
type Head struct {
	Schema        string          `json:"schema"`
	TransactionID string          `json:"transaction_id"`
	Author        ledger.Actor    `json:"author"`
	Extra         json.RawMessage `json:"extra,omitempty"` // of a later version (package canon)
}

// Base is Observation's.
func (h *Head) Base() *Head { return h }

// blank makes an observation of a kind, to be read into, and nil for another kind.
func blank(kind string) Observation {
	switch kind {
	case KindDisposition:
		return &Disposition{}
	case KindDeployment:
		return &Deployment{}
	case KindSettings:
		return &Settings{}
	}
	return nil
}

// Schema is that of a kind.
func Schema(o Observation) string { return schemas[o.Kind()] }

var schemas = map[string]string{KindDisposition: "countersign/disposition/1", KindDeployment: "countersign/deployment/1", KindSettings: "countersign/settings/1"}

// Is reports whether artifacts of a kind are observations.
func Is(kind string) bool { return blank(kind) != nil }

// Read reads the observation out of a transaction's directory, and when it was recorded; nil where the transaction is about
// something else. One that does not hold, or a second one, is an error.
func Read(dir fs.FS, log *ledger.Log) (found Observation, at time.Time, err error) {
	for i, p := range log.Payloads() {
		a, is := p.(*ledger.ArtifactStored)
		if !is || !Is(a.Kind) {
			continue
		}
		o := blank(a.Kind)
		err := ledger.ReadDocument(dir, a.Path, o)
		if err == nil {
			at, err = log.Time(i)
		}
		if err == nil {
			err = o.Base().check(log, schemas[a.Kind])
		}
		if err == nil {
			err = o.Check(at)
		}
		if err == nil && found != nil {
			err = errors.New("another observation stands before it")
		}
		if err != nil {
			return nil, at, fmt.Errorf("the artifact %s: %w", a.Kind, err)
		}
		found = o
	}
	return found, at, nil
}

func (h Head) check(log *ledger.Log, schema string) error {
	switch tx := log.Transaction(); {
	case h.Schema != schema:
		return fmt.Errorf("it is of the unknown schema %.60q", h.Schema)
	case tx.Pointers.Proposal != nil:
		return errors.New("its transaction proposes a change")
	case h.TransactionID != tx.TransactionID || h.Author != tx.Proposer:
		return errors.New("it is of another transaction, or by somebody else than who began this one")
	}
	return canon.CheckGrowth("it", h.Extra, "")
}

// Check is rule L26 for a transaction's directory.
func Check(dir fs.FS, log *ledger.Log) []canon.Violation {
	var f canon.Finder
	if _, _, err := Read(dir, log); err != nil {
		f.Add("L26", ledger.EventsFile, "%v", err)
	}
	return f.Sorted()
}

// CheckRecord is approval.CheckRecord with Check.
func CheckRecord(tree fs.FS, id string) (*ledger.Log, []canon.Violation, error) {
	log, found, err := approval.CheckRecord(tree, id)
	if err != nil || log == nil {
		return log, found, err
	}
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return log, found, err
	}
	return log, append(found, Check(dir, log)...), nil
}
