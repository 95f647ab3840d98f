// Package record is what Countersign promises to other programs: it reads what was
// recorded, and says what a human approved. All that it exports stays as it is until
// version 2; nothing else in this module is promised.
//
//	Open      one transaction of a ledger, from its files; what breaks a rule is an error
//	Verdict   what was decided, made again from the record alone
//	Exactly   whether a commit is what was approved, to the byte, and nothing else
//	Audit     the whole history of a ledger, from a Git bundle
//	Needs     what the Policy of a tree asks of a change
//	PatchID   the number that people approve
//
// # What is trusted
//
// The packages below this one (but sshsig/signing and signed/signedtest) decide; they are
// the core, and are not promised: they may change with each release. They hold no clock, no file, no network, no
// process and no Git, and import the standard library, golang.org/x/crypto,
// golang.org/x/text and a YAML parser; a test holds them to that, and to 10,000 lines of
// code. From the ground up:
//
//	canon, rule, format, visible   canonical JSON; findings; versions; what a reader sees
//	patch                          canonical bytes, paths, what a patch makes of a tree
//	ledger, result                 events, the states they may go through, one directory
//	policy                         the Policy file, and what it asks of a patch
//	sshsig, signed                 SSH signatures, and the statement that people sign
//	approval                       decisions, and what they add up to
//	audit                          the rules of a ledger's whole history
//
// Whoever holds these to docs/spec/ knows what a sound ledger proves. Trusted beside
// them: SHA-256, SHA-1 as Git has it, the signatures' algorithms, and whoever can write
// what the Policy lists as keys or accounts. Not trusted: the ledger, the patch, the
// bundle, the pages in a ledger, and every word in them.
package record

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Record is one transaction of a ledger, which breaks no rule.
type Record struct {
	dir fs.FS
	log *ledger.Log
}

// A Finding is a broken rule of docs/spec/: its id, such as "L17", where, and why.
type Finding struct{ Rule, Path, Message string }

// An UnsoundError says that a record breaks rules. Nothing that it says is to be believed.
type UnsoundError struct {
	ID       string
	Findings []Finding
}

func (e *UnsoundError) Error() string {
	f := e.Findings[0]
	return fmt.Sprintf("transaction %s is not sound: %s %s: %s, and %d more", e.ID, f.Rule, f.Path, f.Message, len(e.Findings)-1)
}

// Open reads a transaction. files are those of a commit of the ledger, such as
// "git archive refs/agent/ledger" writes; id is a ULID, the name of the transaction's
// directory. A record that breaks a rule is an *UnsoundError. What one record does not
// show is for Audit: whether the ledger's history was changed.
func Open(files fs.FS, id string) (*Record, error) {
	if err := ledger.CheckID(id); err != nil {
		return nil, err
	}
	if _, err := fs.Stat(files, ledger.Dir(id)); err != nil {
		return nil, fmt.Errorf("there is no transaction %s: %w", id, err)
	}
	log, found, err := approval.CheckRecord(files, id)
	if err != nil {
		return nil, fmt.Errorf("reading transaction %q: %w", id, err)
	}
	if len(found) > 0 {
		e := &UnsoundError{ID: id}
		for _, f := range found {
			e.Findings = append(e.Findings, Finding{f.RuleID, f.Path, f.Message})
		}
		return nil, e
	}
	if log.Transaction().Pointers.Proposal == nil {
		return nil, fmt.Errorf("transaction %s proposes nothing", id)
	}
	dir, err := fs.Sub(files, ledger.Dir(id))
	return &Record{dir, log}, err
}

// State is what became of it: "proposed", "approved", "denied", "applied", "completed",
// "superseded", "failed" or "interrupted" (docs/spec/transaction.md).
func (r *Record) State() string { return string(r.log.Transaction().Status) }

// PatchID is the SHA-256 of the canonical bytes of the patch, 64 hex digits.
func (r *Record) PatchID() string { return r.log.Transaction().PatchID() }

// Files are the paths that the patch touches, both names of a renamed one.
func (r *Record) Files() []string { return r.proposal().TargetFiles }

// Base is the commit that the patch was reviewed on, in hex digits.
func (r *Record) Base() string { return r.proposal().BaseCommit }

func (r *Record) proposal() *ledger.Proposal { return r.log.Transaction().Pointers.Proposal }

// Patch returns the canonical bytes that hash to PatchID. A patch whose secrets the
// ledger does not have is ErrRedacted.
func (r *Record) Patch() ([]byte, error) {
	raw, err := fs.ReadFile(r.dir, ledger.PatchFile(r.PatchID()))
	switch {
	case r.proposal().PatchRedactedSHA256 != "":
		return nil, ErrRedacted
	case err != nil:
		return nil, err
	case canon.Hex(raw) != r.PatchID():
		return nil, errors.New("what is stored of the patch is another patch")
	}
	return raw, nil
}

// ErrRedacted is a patch that its ledger has only without the secrets in it.
var ErrRedacted = errors.New("the ledger has the patch only without its secrets")

// PatchID returns the hash that people approve of a patch in canonical bytes
// (docs/spec/patch.md). Bytes in any other form are an error.
func PatchID(canonical []byte) (string, error) {
	if _, err := patch.Parse(canonical); err != nil {
		return "", err
	}
	return canon.Hex(canonical), nil
}

// A Need is an approval that a change takes. Kind is "fileChange", "secrets_override" or
// "protected_path"; Required is how many people it takes. Users and Teams are those who
// may give it, none for anybody whom the Policy lets approve.
type Need struct {
	Kind         string
	Required     int
	Signed       bool // only by a person's own key
	Paths        []string
	Users, Teams []string
}

// Needs returns what the Policy of a commit's files asks of a change that touches paths;
// secrets says that it adds what looks like some. A tree without a Policy has the
// defaults; one whose Policy cannot be read is an error.
func Needs(files fs.FS, paths []string, secrets bool) ([]Need, error) {
	p, _, err := policy.Read(files)
	if err != nil {
		return nil, err
	}
	var out []Need
	for _, n := range p.Needs(paths, secrets) {
		out = append(out, Need{n.Kind, n.Required, n.Signed, n.Paths, n.Users, n.Teams})
	}
	return out, nil
}
