package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/format"
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

func readElsewhere(dir fs.FS, a *ArtifactStored) (e Elsewhere, err error) {
	raw, err := fs.ReadFile(dir, a.Path)
	if err == nil {
		err = format.Unmarshal("it", raw, &e)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", a.Path, err)
	}
	return e, err
}

// ProposedBy are all who proposed a transaction's patch in it, first or again. One whose artifact cannot be
// read is an error.
func ProposedBy(dir fs.FS, log *Log) ([]Actor, error) {
	out := []Actor{log.Meta().Proposer}
	for _, a := range log.Artifacts(KindAgain) {
		p, err := readProvenance(dir, a)
		if err != nil {
			return nil, err
		}
		out = append(out, p.Proposer)
	}
	return out, nil
}

// requestedBy are all who asked for a transaction's patch in it, as ProposedBy has who proposed it: whom a forge tells of, and
// whom a proposer names that is heard.
func requestedBy(dir fs.FS, log *Log, heard func(proposer Actor) bool) ([]Requester, error) {
	var out []Requester
	add := func(proposer Actor, all []Requester) {
		for _, r := range all {
			if r.isForges() || heard(proposer) {
				out = append(out, r)
			}
		}
	}
	add(log.Meta().Proposer, log.tx.RequestedBy())
	for _, a := range log.Artifacts(KindAgain) {
		p, err := readProvenance(dir, a)
		if err != nil {
			return nil, err
		}
		add(p.Proposer, p.RequestedBy)
	}
	return SortRequesters(out), nil
}

// ProposedElsewhere returns who proposed the patch of a transaction in other transactions of a ledger, by its index,
// or asked for it there, and is named in the transaction's record, in dir, neither as such nor in an Elsewhere. Any doubt is an error: a
// proposer who is not seen could approve their own change. Whom a proposer names as having asked counts where they propose it
// in this transaction too: a stranger would else keep its approvers from it.
func ProposedElsewhere(tree, dir fs.FS, log *Log) ([]ProposedIn, error) {
	tx := log.Transaction()
	listed, err := Proposals(tree, tx.PatchID())
	if err != nil {
		return nil, err
	}
	var here, named []Actor
	var asked []Requester
	var out []ProposedIn
	proposesHere := func(who Actor) bool {
		return slices.ContainsFunc(here, func(a Actor) bool { return a.Kind == who.Kind && a.ID == who.ID })
	}
	for _, other := range listed {
		id := other.TransactionID
		if id == tx.TransactionID {
			continue
		}
		if named == nil {
			if here, err = ProposedBy(dir, log); err == nil {
				named, asked, err = namedIn(dir, log)
			}
			if err != nil {
				return nil, &CorruptError{tx.TransactionID, err}
			}
		}
		if err := CheckID(id); err != nil {
			return nil, &CorruptError{id, err}
		}
		there, err := Read(tree, id)
		if err != nil {
			return nil, err
		}
		if there.Transaction().PatchID() != tx.PatchID() {
			return nil, &CorruptError{id, errors.New("it does not propose the patch that it is listed under")}
		}
		its, err := fs.Sub(tree, Dir(id))
		if err != nil {
			return nil, err
		}
		all, err := ProposedBy(its, there)
		if err != nil {
			return nil, &CorruptError{id, err}
		}
		askedThere, err := requestedBy(its, there, proposesHere)
		if err != nil {
			return nil, &CorruptError{id, err}
		}
		for i, who := range all {
			in := ProposedIn{Proposer: who, TransactionID: id}
			if i == 0 { // whichever of its proposals they asked for
				in.RequestedBy = news(askedThere, asked)
				asked = append(asked, in.RequestedBy...)
			}
			if in.RequestedBy != nil || !slices.ContainsFunc(named, func(a Actor) bool { return a.Kind == who.Kind && a.ID == who.ID }) {
				named, out = append(named, who), append(out, in)
			}
		}
	}
	return out, nil
}

// Everybody returns all who proposed the patch of a transaction, and who asked for it, in it or in others of the
// ledger. Any doubt is an error.
func Everybody(tree fs.FS, log *Log) ([]Actor, []Requester, error) {
	dir, err := fs.Sub(tree, Dir(log.tx.TransactionID))
	if err != nil {
		return nil, nil, err
	}
	out, asked, err := namedIn(dir, log)
	if err != nil {
		return nil, nil, &CorruptError{log.tx.TransactionID, err}
	}
	others, err := ProposedElsewhere(tree, dir, log)
	there := Elsewhere{Proposals: others}
	return append(out, there.Proposers()...), SortRequesters(append(asked, there.Requesters()...)), err
}

// namedIn are all whom a record names as proposers of its patch, and as having asked for it.
func namedIn(dir fs.FS, log *Log) (out []Actor, asked []Requester, err error) {
	if out, err = ProposedBy(dir, log); err == nil {
		asked, err = requestedBy(dir, log, func(Actor) bool { return true })
	}
	if err != nil {
		return nil, nil, err
	}
	for _, a := range log.Artifacts(KindElsewhere) {
		doc, err := readElsewhere(dir, a)
		if err != nil {
			return nil, nil, err
		}
		out, asked = append(out, doc.Proposers()...), append(asked, doc.Requesters()...)
	}
	return out, asked, nil
}
