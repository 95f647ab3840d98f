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
// The packages below this one (but sshsig/signing) decide; they are
// the core, and are not promised: they may change with each release. They hold no clock, no file, no network, no
// process and no Git, and import the standard library, golang.org/x/crypto,
// golang.org/x/text and a YAML parser; a test holds them to that, and to 10,000 lines of
// code. From the ground up:
//
//	canon      canonical JSON, its version, findings; what a reader sees
//	patch      canonical bytes, paths, what a patch makes of a tree
//	ledger     events, the states they may go through, one directory
//	policy     the Policy file, and what it asks of a patch
//	sshsig     SSH signatures
//	approval   decisions, what people sign, and what it adds up to
//	audit      the rules of a ledger's whole history
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
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Record is one transaction of a ledger, which breaks no rule.
type Record struct {
	dir fs.FS
	log *ledger.Log
}

// A Finding is a broken rule of docs/spec/: its id, such as "L17", the commit of the
// ledger and the path where, each "" where there is none, and why.
type Finding struct{ Rule, Commit, Path, Message string }

// String is the finding on one line.
func (f Finding) String() string {
	where := ""
	for _, at := range []string{f.Commit, f.Path} {
		if at != "" {
			where += " " + patch.Quote(at)
		}
	}
	return f.Rule + where + ": " + f.Message
}

// An UnsoundError says that a record breaks rules. Nothing that it says is to be believed.
type UnsoundError struct {
	ID       string
	Findings []Finding
}

func (e *UnsoundError) Error() string {
	more := ""
	if n := len(e.Findings); n > 1 {
		more = fmt.Sprintf(", and %d more", n-1)
	}
	return fmt.Sprintf("transaction %s is not sound: %s%s", e.ID, e.Findings[0], more)
}

// ErrNewer is of what only a newer Countersign can judge: neither sound nor damaged, and
// never to be taken for approved (docs/spec/versions.md).
var ErrNewer = errors.New("it cannot be judged here")

// newer is an error, which is ErrNewer if it is of what a newer program wrote.
func newer(err error) error {
	if errors.As(err, new(*canon.NewerError)) {
		return fmt.Errorf("%w: %w", ErrNewer, err)
	}
	return err
}

// Open reads a transaction. files are those of a commit of the ledger, such as
// "git archive refs/agent/ledger" writes, and do not change while the Record is used; id is
// a ULID after "tx_", the name of the transaction's directory. A record that breaks a rule
// is an *UnsoundError, one of a newer version ErrNewer. What one record does not show is
// for Audit: whether the ledger's history was changed.
func Open(files fs.FS, id string) (*Record, error) {
	if err := ledger.CheckID(id); err != nil {
		return nil, err
	}
	if err := writing.CheckSchema(files); err != nil {
		return nil, newer(err)
	}
	if _, err := fs.Stat(files, ledger.Dir(id)); err != nil {
		return nil, fmt.Errorf("there is no transaction %s: %w", id, err)
	}
	log, found, err := approval.CheckRecord(files, id)
	if err != nil {
		return nil, fmt.Errorf("reading transaction %q: %w", id, err)
	}
	e := &UnsoundError{ID: id}
	for _, f := range found {
		e.Findings = append(e.Findings, Finding{Rule: f.RuleID, Path: f.Path, Message: f.Message})
	}
	switch {
	case len(found) > 0 && errors.As(canon.ErrorOf(found), new(*canon.NewerError)):
		return nil, fmt.Errorf("%w: transaction %s: %s", ErrNewer, id, found[0].Message)
	case len(found) > 0:
		return nil, e
	case log.Transaction().Pointers.Proposal == nil:
		return nil, fmt.Errorf("transaction %s proposes nothing", id)
	}
	dir, err := fs.Sub(files, ledger.Dir(id))
	return &Record{dir, log}, err
}

// State is its status (docs/spec/transaction.md): "proposed" and "awaiting_approval",
// "denied", "applied" and then "completed", "superseded", "failed" or "interrupted". It does
// not say whether it is approved now: that takes the Policy of now.
func (r *Record) State() string { return string(r.log.Transaction().Status) }

// PatchID is the SHA-256 of the canonical bytes of the patch, 64 hex digits.
func (r *Record) PatchID() string { return r.log.Transaction().PatchID() }

// Files are the paths that the patch touches, both names of a renamed one.
func (r *Record) Files() []string { return slices.Clone(r.proposal().TargetFiles) }

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
// (docs/spec/patch.md). Bytes of another form are an error; whether a change has these bytes
// and no others shows only with the files before it.
func PatchID(canonical []byte) (string, error) {
	if _, err := patch.Parse(canonical); err != nil {
		return "", err
	}
	return canon.Hex(canonical), nil
}

// A Need is an approval that a change takes. Kind is "fileChange", "secrets_override" or
// "protected_path"; Required is how many people it takes. Those in Users and Teams may give
// it, and with Owners who owns each of Paths by CODEOWNERS; with none of the three anybody
// whom the Policy lets approve.
type Need struct {
	Kind         string
	Required     int
	Signed       bool // only by a person's own key
	Paths        []string
	Users, Teams []string
	Owners       bool
}

// Needs returns what the Policy of a commit's files asks of a change that touches paths,
// as Files has them; secrets says that it adds what looks like some. A tree without a
// Policy has the defaults. A Policy that cannot be read is an error, one of a newer version
// ErrNewer, and a path that no patch may touch is an error.
func Needs(files fs.FS, paths []string, secrets bool) ([]Need, error) {
	for _, path := range paths {
		if err := patch.CheckPath(path); err != nil {
			return nil, err
		}
	}
	p, _, err := policy.Read(files)
	if err != nil {
		return nil, newer(err)
	}
	var out []Need
	for _, n := range p.Needs(paths, secrets) {
		out = append(out, Need{n.Kind, n.Required, n.Signed, n.Paths, n.Users, n.Teams, n.Owners})
	}
	return out, nil
}
