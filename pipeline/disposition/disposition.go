// Package disposition is what became of an exception: somebody who had no part in it has reviewed it. It is recorded in a
// transaction of its own, as an artifact (rule L26), and decides nothing: what was approved and what accounts for a commit does not depend
// on it. It is pure.
package disposition

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/format"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/rule"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// Kind is the kind of the artifact, Schema its schema, and Namespace what a signature of one is for.
const (
	Kind      = "disposition"
	Schema    = "countersign/disposition/1"
	Namespace = "countersign-disposition@v1"
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

// A Disposition is that artifact. It stands in a transaction of its own, which proposes nothing, and names it, so
// that a signature is good for no other. About is the commit or the transaction that was reviewed. Whether its
// Author is independent of that is not said here: who reads it judges (package evidence).
type Disposition struct {
	Schema        string          `json:"schema"`
	TransactionID string          `json:"transaction_id"`
	About         string          `json:"about"`
	As            Outcome         `json:"as"`
	Author        ledger.Actor    `json:"author"`
	Reason        string          `json:"reason"`
	Signature     *Signed         `json:"signature,omitempty"`
	Extra         json.RawMessage `json:"extra,omitempty"` // of a later version (package format)
}

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
		panic("disposition: encoding a disposition: " + err.Error())
	}
	return line
}

// Prove holds the signature to a list of keys, at the time when it was recorded: the key has to be its author's.
func (d Disposition) Prove(keys sshsig.Allowed, at time.Time) (sshsig.Proof, error) {
	mail, local := strings.CutPrefix(d.Author.ID, "local:")
	if d.Signature == nil || !local || !strings.Contains(mail, "@") {
		return sshsig.Proof{}, errors.New("nobody signed it who has an address in a list of keys")
	}
	return keys.Prove(Namespace, d.Statement(), d.Signature.Armored, []string{mail}, at)
}

// check is an error unless it is what this program writes in a transaction at a time.
func (d Disposition) check(log *ledger.Log, at time.Time) error {
	switch tx := log.Transaction(); {
	case d.Schema != Schema:
		return fmt.Errorf("it is of the unknown schema %.60q", d.Schema)
	case tx.Pointers.Proposal != nil:
		return errors.New("its transaction proposes a change")
	case d.TransactionID != tx.TransactionID || d.Author != tx.Proposer:
		return errors.New("it is of another transaction, or by somebody else than who began this one")
	case !canon.IsGitID(d.About) && (ledger.CheckID(d.About) != nil || d.About == d.TransactionID):
		return errors.New("it is about no commit and no other transaction")
	case !slices.Contains(Outcomes, d.As):
		return fmt.Errorf("it has the unknown outcome %.40q", d.As)
	case d.Reason == "" || ledger.OneLine(d.Reason, 500) != d.Reason:
		return errors.New("its reason is not one line of 1 to 500 characters")
	}
	if err := format.CheckGrowth("it", d.Extra, ""); err != nil || d.Signature == nil {
		return err
	}
	list, err := sshsig.ParseAllowedSigners([]byte(d.Signature.Line))
	if err != nil || strings.Contains(d.Signature.Line, "\n") {
		return errors.New("the line of its key is not one of a list of keys")
	}
	_, err = d.Prove(list, at)
	return err
}

// Read reads from a transaction's directory what became of an exception, and when that was recorded; nil where the
// transaction is about something else. One that does not hold, or a second one, is an error.
func Read(dir fs.FS, log *ledger.Log) (found *Disposition, at time.Time, err error) {
	for i, p := range log.Payloads() {
		a, is := p.(*ledger.ArtifactStored)
		if !is || a.Kind != Kind {
			continue
		}
		var d Disposition
		err := ledger.ReadDocument(dir, a.Path, &d)
		if err == nil {
			at, err = log.Time(i)
		}
		if err == nil {
			err = d.check(log, at)
		}
		if err == nil && found != nil {
			err = errors.New("another one stands before it")
		}
		if err != nil {
			return nil, at, fmt.Errorf("what became of an exception: %w", err)
		}
		found = &d
	}
	return found, at, nil
}

// Check is rule L26 for a transaction's directory.
func Check(dir fs.FS, log *ledger.Log) []rule.Violation {
	var f rule.Finder
	if _, _, err := Read(dir, log); err != nil {
		f.Add("L26", ledger.EventsFile, "%v", err)
	}
	return f.Sorted()
}

// CheckRecord is approval.CheckRecord with Check.
func CheckRecord(tree fs.FS, id string) (*ledger.Log, []rule.Violation, error) {
	log, found, err := approval.CheckRecord(tree, id)
	if err != nil || log == nil {
		return log, found, err
	}
	dir, err := fs.Sub(tree, ledger.Dir(id))
	return log, append(found, Check(dir, log)...), err
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
	if proof.Fingerprint != "" {
		s.Signature = &ledger.Signature{KeyFingerprint: proof.Fingerprint, Principal: proof.Principal}
	}
	return s
}
