package lookup

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Provenances reads where a transaction's proposals came from, in the order of the log: those of which review
// recorded that they are of its patch. dir is the transaction's directory.
func Provenances(dir fs.FS, log *ledger.Log) ([]ledger.Provenance, error) {
	var out []ledger.Provenance
	for _, a := range ledger.Of[*ledger.ArtifactStored](log) {
		if a.Kind != ledger.KindProvenance && a.Kind != ledger.KindAgain {
			continue
		}
		p, err := ledger.ReadProvenance(dir, a)
		if err != nil {
			return nil, &ledger.CorruptError{ID: log.Transaction().TransactionID, Err: err}
		}
		if tx := log.Transaction(); a.Kind == ledger.KindProvenance && tx.Pointers.Proposal != nil {
			p.Author, p.Message, p.Declared, p.Summary = tx.Pointers.Proposal.Author, tx.Pointers.Proposal.Message, tx.Pointers.Proposal.Declared, tx.Notes
			p.RequestedBy = tx.RequestedBy()
		}
		out = append(out, p)
	}
	return out, nil
}

// requestedBy are all who asked for a transaction's patch in it, as ProposedBy has who proposed it: whom a forge tells of, and
// whom a proposer names that is heard.
func requestedBy(dir fs.FS, log *ledger.Log, heard func(proposer ledger.Actor) bool) ([]ledger.Requester, error) {
	var out []ledger.Requester
	add := func(proposer ledger.Actor, all []ledger.Requester) {
		for _, r := range all {
			if r.IsForges() || heard(proposer) {
				out = append(out, r)
			}
		}
	}
	add(log.Meta().Proposer, log.Transaction().RequestedBy())
	for _, a := range log.Artifacts(ledger.KindAgain) {
		p, err := ledger.ReadProvenance(dir, a)
		if err != nil {
			return nil, err
		}
		add(p.Proposer, p.RequestedBy)
	}
	return ledger.SortRequesters(out), nil
}

// ProposedElsewhere returns who proposed the patch of a transaction in other transactions of a ledger, by its index,
// or asked for it there, and is named in the transaction's record, in dir, neither as such nor in an Elsewhere. Any doubt is an error: a
// proposer who is not seen could approve their own change. Whom a proposer names as having asked counts where they propose it
// in this transaction too: a stranger would else keep its approvers from it.
func ProposedElsewhere(tree, dir fs.FS, log *ledger.Log) ([]ledger.ProposedIn, error) {
	tx := log.Transaction()
	listed, err := Proposals(tree, tx.PatchID())
	if err != nil {
		return nil, err
	}
	var here, named []ledger.Actor
	var asked []ledger.Requester
	var out []ledger.ProposedIn
	proposesHere := func(who ledger.Actor) bool {
		return slices.ContainsFunc(here, func(a ledger.Actor) bool { return a.Kind == who.Kind && a.ID == who.ID })
	}
	for _, other := range listed {
		id := other.TransactionID
		if id == tx.TransactionID {
			continue
		}
		if named == nil {
			if here, err = ledger.ProposedBy(dir, log); err == nil {
				named, asked, err = namedIn(dir, log)
			}
			if err != nil {
				return nil, &ledger.CorruptError{ID: tx.TransactionID, Err: err}
			}
		}
		if err := ledger.CheckID(id); err != nil {
			return nil, &ledger.CorruptError{ID: id, Err: err}
		}
		there, err := Read(tree, id)
		if err != nil {
			return nil, err
		}
		if there.Transaction().PatchID() != tx.PatchID() {
			return nil, &ledger.CorruptError{ID: id, Err: errors.New("it does not propose the patch that it is listed under")}
		}
		its, err := fs.Sub(tree, ledger.Dir(id))
		if err != nil {
			return nil, err
		}
		all, err := ledger.ProposedBy(its, there)
		if err != nil {
			return nil, &ledger.CorruptError{ID: id, Err: err}
		}
		askedThere, err := requestedBy(its, there, proposesHere)
		if err != nil {
			return nil, &ledger.CorruptError{ID: id, Err: err}
		}
		for i, who := range all {
			in := ledger.ProposedIn{Proposer: who, TransactionID: id}
			if i == 0 { // whichever of its proposals they asked for
				in.RequestedBy = ledger.NewRequesters(askedThere, asked)
				asked = append(asked, in.RequestedBy...)
			}
			if in.RequestedBy != nil || !slices.ContainsFunc(named, func(a ledger.Actor) bool { return a.Kind == who.Kind && a.ID == who.ID }) {
				named, out = append(named, who), append(out, in)
			}
		}
	}
	return out, nil
}

// Everybody returns all who proposed the patch of a transaction, and who asked for it, in it or in others of the
// ledger. Any doubt is an error.
func Everybody(tree fs.FS, log *ledger.Log) ([]ledger.Actor, []ledger.Requester, error) {
	dir, err := fs.Sub(tree, ledger.Dir(log.Transaction().TransactionID))
	if err != nil {
		return nil, nil, err
	}
	out, asked, err := namedIn(dir, log)
	if err != nil {
		return nil, nil, &ledger.CorruptError{ID: log.Transaction().TransactionID, Err: err}
	}
	others, err := ProposedElsewhere(tree, dir, log)
	there := ledger.Elsewhere{Proposals: others}
	return append(out, there.Proposers()...), ledger.SortRequesters(append(asked, there.Requesters()...)), err
}

// namedIn are all whom a record names as proposers of its patch, and as having asked for it.
func namedIn(dir fs.FS, log *ledger.Log) (out []ledger.Actor, asked []ledger.Requester, err error) {
	if out, err = ledger.ProposedBy(dir, log); err == nil {
		asked, err = requestedBy(dir, log, func(ledger.Actor) bool { return true })
	}
	if err != nil {
		return nil, nil, err
	}
	for _, a := range log.Artifacts(ledger.KindElsewhere) {
		doc, err := ledger.ReadElsewhere(dir, a)
		if err != nil {
			return nil, nil, err
		}
		out, asked = append(out, doc.Proposers()...), append(asked, doc.Requesters()...)
	}
	return out, asked, nil
}
