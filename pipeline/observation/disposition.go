package observation

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// KindDisposition is the kind of a Disposition, and DispositionNamespace what a signature of one is for.
const (
	KindDisposition      = "disposition"
	DispositionNamespace = "countersign-disposition@v1"
)

// An Outcome is what somebody found of an exception.
type Outcome string

// The outcomes: it may stay as it is, a later change made good what was wrong, it was taken back.
const (
	Accepted Outcome = "accepted"
	Fixed    Outcome = "fixed"
	Revoked  Outcome = "revoked"
)

// Outcomes are all of them.
var Outcomes = []Outcome{Accepted, Fixed, Revoked}

// A Disposition is what became of an exception: somebody has reviewed it. It names its own transaction, so that a signature is
// good for no other. About is the commit or the transaction that was reviewed, Comment what was read on a forge. Whether its Author is
// independent of that is not said here: who reads it judges (package evidence).
type Disposition struct {
	Head
	About     string   `json:"about"`
	As        Outcome  `json:"as"`
	Reason    string   `json:"reason"`
	Signature *Signed  `json:"signature,omitempty"`
	Comment   *Comment `json:"comment,omitempty"`
}

// Kind is Observation's.
func (*Disposition) Kind() string { return KindDisposition }

// Words is Observation's.
func (d *Disposition) Words() string { return string(d.As) + " " + d.About + ": " + d.Reason }

// Signed is the signature of all else that a Disposition has, and the line of the Policy's list that has the key.
type Signed struct {
	Armored string `json:"armored"`
	Line    string `json:"line"`
}

// Statement is what is signed.
func (d Disposition) Statement() []byte {
	d.Signature = nil
	line, err := canon.Line(d)
	if err != nil {
		panic("observation: encoding a disposition: " + err.Error())
	}
	return line
}

// Prove holds the signature to a list of keys, at the time when it was recorded: the key has to be its author's.
func (d Disposition) Prove(keys sshsig.Allowed, at time.Time) (sshsig.Proof, error) {
	mail, local := strings.CutPrefix(d.Author.ID, "local:")
	if d.Signature == nil || !local || !strings.Contains(mail, "@") {
		return sshsig.Proof{}, errors.New("nobody signed it who has an address in a list of keys")
	}
	return keys.Prove(DispositionNamespace, d.Statement(), d.Signature.Armored, []string{mail}, at)
}

// Check is Observation's.
func (d *Disposition) Check(at time.Time) error {
	switch {
	case !isAbout(d.About) || d.About == d.TransactionID:
		return errors.New("it is about no commit and no other transaction")
	case !slices.Contains(Outcomes, d.As):
		return fmt.Errorf("it has the unknown outcome %.40q", d.As)
	case d.Reason == "" || ledger.OneLine(d.Reason, 500) != d.Reason:
		return errors.New("its reason is not one line of 1 to 500 characters")
	case d.Comment != nil:
		return d.Comment.check(d)
	case d.Signature == nil:
		return nil
	}
	list, err := sshsig.ParseAllowedSigners([]byte(d.Signature.Line))
	if err != nil || strings.Contains(d.Signature.Line, "\n") {
		return errors.New("the line of its key is not one of a list of keys")
	}
	_, err = d.Prove(list, at)
	return err
}

// Part says which part somebody had in the change of a transaction, whose record names them: who had any
// is not independent of it. "" is none. People joined by a list of keys are one, as for approvals.
func Part(dir fs.FS, log *ledger.Log, who ledger.Source, keys sshsig.Allowed) string {
	c := approval.Case{People: approval.People(dir, log, keys)}
	is := func(a ledger.Actor) bool { return c.Is(who, a) }
	tx := log.Transaction()
	made, asked := []ledger.Actor{tx.Proposer}, tx.RequestedBy()
	for _, by := range ledger.Proposers(dir, log) {
		made = append(made, by...)
	}
	for _, by := range ledger.Requesters(dir, log) {
		asked = append(slices.Clip(asked), by...)
	}
	if p := tx.Pointers.Proposal; p != nil {
		made = append(made, p.Authors...)
	}
	approved := func(d *ledger.ApprovalDecision) bool { return d.Decision == ledger.Approve && is(d.Source.Author) }
	switch {
	case slices.ContainsFunc(made, is):
		return "proposed it"
	case slices.ContainsFunc(asked, func(r ledger.Requester) bool { return is(r.Actor) }):
		return "asked for it"
	case slices.ContainsFunc(ledger.Of[*ledger.ApprovalDecision](log), approved):
		return "approved it"
	}
	return ""
}

// Source is where a disposition is from, as people are told apart by it.
func (d Disposition) Source(proof sshsig.Proof) ledger.Source {
	s := ledger.Source{Kind: "local", Author: d.Author}
	if d.Comment != nil {
		s.Kind = d.Comment.Statement.Kind
	}
	if proof.Fingerprint != "" {
		s.Signature = &ledger.Signature{KeyFingerprint: proof.Fingerprint, Principal: proof.Principal}
	}
	return s
}
