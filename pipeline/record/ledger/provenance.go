package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// The kinds of the artifacts that say where a proposal came from, and their schemas:
// the one that review began the transaction with, and those of the same patch that came while
// it was open. MaxAgain is how many of these a transaction has, but for the first of each other person, and MaxNamed from how
// many on a proposer cannot name another requester. KindTrace is what a proposer says that they did before.
const (
	KindTrace      = "trace"
	KindProvenance = "proposal"
	KindAgain      = "proposed_again"
	ProposalSchema = "countersign/proposal/1"
	AgainSchema    = "countersign/proposed_again/1"
	MaxAgain       = 20
	MaxNamed       = 200
)

// OutcomeAgain is the outcome of a review that records a further proposal.
const OutcomeAgain = "again"

// A Provenance is such an artifact: who proposed a patch, with which program, of what input. The hashes are of
// the first proposal alone, the members below them of those that came after it: what they claim, and the artifact with
// their trace.
type Provenance struct {
	Schema      string             `json:"schema"`
	Tool        string             `json:"tool"`
	Proposer    Actor              `json:"proposer"`
	Input       Input              `json:"input"`
	BaseCommit  string             `json:"base_commit"`
	PatchID     string             `json:"patch_id"`
	BaseSHA256  map[string]*string `json:"base_sha256_by_path,omitempty"`
	AfterSHA256 map[string]*string `json:"after_sha256_by_path,omitempty"`

	Summary  string   `json:"summary,omitempty"`
	Author   *Author  `json:"author,omitempty"`
	Message  string   `json:"message,omitempty"`
	Declared []string `json:"declared,omitempty"`
	Trace    string   `json:"trace,omitempty"`

	RequestedBy []Requester `json:"requested_by,omitempty"`
}

// An Input is what was given: of which kind and format, through what, if not the command line, how many bytes, and
// their hash, "sha256:…", which is left out where the patch is stored without what looks like secrets in it.
type Input struct {
	Kind   string `json:"kind"`
	Format string `json:"format,omitempty"`
	Via    string `json:"via,omitempty"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// By reports whether a proposal is somebody's.
func (p Provenance) By(who Actor) bool { return p.Proposer.Kind == who.Kind && p.Proposer.ID == who.ID }

// ReadProvenance reads what an artifact says of a proposal.
func ReadProvenance(dir fs.FS, a *ArtifactStored) (p Provenance, err error) {
	err = ReadDocument(dir, a.Path, &p)
	return p, err
}

// Proposers are those who proposed a transaction's patch beside the first, by the path of the artifact that says so:
// one of each further proposal, or all that an Elsewhere names. One that cannot be read is left out.
func Proposers(dir fs.FS, log *Log) map[string][]Actor {
	out := map[string][]Actor{}
	for _, a := range log.Artifacts(KindAgain) {
		if p, err := ReadProvenance(dir, a); err == nil && p.Proposer.ID != "" {
			out[a.Path] = []Actor{p.Proposer}
		}
	}
	for _, a := range log.Artifacts(KindElsewhere) {
		if doc, err := ReadElsewhere(dir, a); err == nil && doc.check(log.tx) == nil {
			out[a.Path] = doc.Proposers()
		}
	}
	return out
}

// again is L24: what is recorded of further proposals is of this patch, by somebody, and of no more
// than MaxAgain beside the first of each person; and none is recorded of a change that is applied, or that is a pull request's own.
// What is recorded of other transactions is of this patch as well.
func (c *checker) again() {
	n, applying := 0, false
	var status Status
	before := []Provenance{{Proposer: c.log.Meta().Proposer, RequestedBy: c.log.tx.RequestedBy()}}
	for _, p := range c.log.Payloads() {
		switch p := p.(type) {
		case *StatusChange:
			status = p.To
		case *ApplyStart:
			applying = true
		case *ApplyComplete:
			applying = false
		case *ArtifactStored:
			if p.Kind == KindElsewhere {
				doc, err := ReadElsewhere(c.dir, p)
				if err == nil {
					err = doc.check(c.log.tx)
				}
				if err != nil {
					c.Add("L24", p.Path, "is no record of who proposed the patch elsewhere: %v", err)
				}
			}
			if p.Kind != KindAgain {
				continue
			}
			if !slices.Contains(OpenStatuses, status) || applying || c.log.tx.GateOnly() {
				c.Add("L24", p.Path, "is a further proposal of a change that is none any more")
			}
			doc, err := ReadProvenance(c.dir, p)
			if err == nil {
				err = doc.CheckAgain(c.log.tx)
			}
			if err != nil {
				c.Add("L24", p.Path, "is no record of a further proposal: %v", err)
			}
			if n++; n > MaxAgain && !doc.TellsOfSomebody(before) {
				c.Add("L24", p.Path, "more than %d further proposals are recorded", MaxAgain)
			}
			before = append(before, doc)
		}
	}
}

// OpenStatuses are those of a transaction that further proposals are recorded of.
var OpenStatuses = []Status{Proposed, Awaiting, Failed}

// CheckAgain is an error unless a record of a further proposal is one of a transaction's patch, as L24 has it.
func (p Provenance) CheckAgain(tx Transaction) error {
	claims := Proposal{Message: p.Message, Declared: p.Declared}
	switch {
	case p.Schema != AgainSchema:
		return fmt.Errorf("its schema is %s", show(p.Schema))
	case p.PatchID != tx.PatchID():
		return fmt.Errorf("proposes another patch, %s", show(p.PatchID))
	case p.Proposer.ID == "" || p.Proposer.Kind == "":
		return errors.New("has no proposer")
	case p.Input.Kind == "" || p.BaseSHA256 != nil || p.AfterSHA256 != nil || p.Author != nil && !p.Author.Valid() || !claims.claims():
		return errors.New("is not as this program writes it")
	case p.Trace != "" && !IsArtifactFile(p.Trace):
		return errors.New("names no artifact as its trace")
	}
	return CheckRequesters(p.RequestedBy)
}

// TellsOfSomebody reports whether a proposal is by somebody, or was asked for by somebody, of whom those before it do not
// tell: it is always recorded, as they may not approve.
func (p Provenance) TellsOfSomebody(before []Provenance) bool {
	var asked []Requester
	for _, o := range before {
		asked = append(asked, o.RequestedBy...)
	}
	return !slices.ContainsFunc(before, func(o Provenance) bool { return o.By(p.Proposer) }) || len(NewRequesters(p.RequestedBy, asked)) > 0
}

// What a record holds of a message; what this program writes is half of that.
const (
	maxMessage  = 16 << 10 // bytes
	maxDeclared = 100
)

// claims reports whether the proposal's message and declarations are texts that a commit can have.
func (p Proposal) claims() bool {
	if p.Kind == KindPullRequest && (p.Message != "" || p.Declared != nil) || len(p.Message) > maxMessage || len(p.Declared) > maxDeclared {
		return false
	}
	for line := range strings.SplitSeq(p.Message, "\n") {
		if !isLine(line) {
			return false
		}
	}
	return !slices.ContainsFunc(p.Declared, func(d string) bool {
		return len(d) > 4<<10 || !isLine(d) || !declared().MatchString(d) || ownTrailer().MatchString(d)
	})
}

// isLine reports whether all characters of a text show.
func isLine(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !Visible(r) }) < 0
}

var (
	declared   = canon.Regexp(`^[A-Za-z][A-Za-z0-9-]*: .`)
	ownTrailer = canon.Regexp(`(?i)^(countersign-|approved-by)`)
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
