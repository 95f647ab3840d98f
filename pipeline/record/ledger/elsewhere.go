package ledger

import (
	"errors"
	"fmt"
	"io/fs"
)

// KindElsewhere is the kind of the artifact that says who had proposed a transaction's patch in other transactions
// of the ledger when somebody decided on it, and ElsewhereSchema its schema. It stands before the decision, so that
// the record of one transaction tells who may not approve it (T10).
const (
	KindElsewhere   = "proposed_elsewhere"
	ElsewhereSchema = "countersign/proposed_elsewhere/1"
)

// An Elsewhere is that artifact. Proposals has each other proposer once, with the first transaction of theirs.
type Elsewhere struct {
	Schema    string       `json:"schema"`
	PatchID   string       `json:"patch_id"`
	Proposals []ProposedIn `json:"proposals"`
}

// A ProposedIn says who proposed a patch in which transaction.
type ProposedIn struct {
	Proposer      Actor       `json:"proposer"`
	TransactionID string      `json:"transaction_id"`
	RequestedBy   []Requester `json:"requested_by,omitempty"` // whom the record did not name yet
}

// Proposers are those whom it names.
func (e Elsewhere) Proposers() []Actor {
	var out []Actor
	for _, p := range e.Proposals {
		out = append(out, p.Proposer)
	}
	return out
}

// Requesters are those whom it names as having asked for the patch.
func (e Elsewhere) Requesters() []Requester {
	var out []Requester
	for _, p := range e.Proposals {
		out = append(out, p.RequestedBy...)
	}
	return SortRequesters(out)
}

// check is an error unless it is what this program writes for a transaction.
func (e Elsewhere) check(tx Transaction) error {
	switch {
	case e.Schema != ElsewhereSchema:
		return fmt.Errorf("its schema is %s", show(e.Schema))
	case e.PatchID != tx.PatchID():
		return fmt.Errorf("is about another patch, %s", show(e.PatchID))
	case len(e.Proposals) == 0:
		return errors.New("names nobody")
	}
	for _, p := range e.Proposals {
		switch {
		case p.Proposer.ID == "" || p.Proposer.Kind == "":
			return errors.New("has a proposal by nobody")
		case CheckID(p.TransactionID) != nil || p.TransactionID == tx.TransactionID:
			return fmt.Errorf("names no other transaction: %s", show(p.TransactionID))
		}
		if err := CheckRequesters(p.RequestedBy); err != nil {
			return err
		}
	}
	return nil
}

// ReadElsewhere reads such an artifact.
func ReadElsewhere(dir fs.FS, a *ArtifactStored) (e Elsewhere, err error) {
	err = ReadDocument(dir, a.Path, &e)
	return e, err
}

// ProposedBy are all who proposed a transaction's patch in it, first or again. One whose artifact cannot be
// read is an error.
func ProposedBy(dir fs.FS, log *Log) ([]Actor, error) {
	out := []Actor{log.Meta().Proposer}
	for _, a := range log.Artifacts(KindAgain) {
		p, err := ReadProvenance(dir, a)
		if err != nil {
			return nil, err
		}
		out = append(out, p.Proposer)
	}
	return out, nil
}
