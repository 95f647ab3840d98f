package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/format"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/signed"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
)

// The kinds of the artifacts of a decision that was signed: the signed.Statement, byte
// for byte as it was signed, a SignatureDoc and a KeyDoc.
const (
	KindDecision  = "decision"
	KindSignature = "signature"
	KindKey       = "key"
)

// A SignatureDoc is the artifact countersign/signature/1: an SSH signature, as
// ssh-keygen writes it.
type SignatureDoc struct {
	Schema  string `json:"schema"`
	Armored string `json:"armored"`
}

// A KeyDoc is the artifact countersign/key/1: the line of the allowed signers that
// listed the key when the decision was recorded.
type KeyDoc struct {
	Schema string `json:"schema"`
	Line   string `json:"line"`
}

const (
	signatureSchema = "countersign/signature/1"
	keySchema       = "countersign/key/1"
)

// NewSignatureDoc is the artifact of a signature that was found good.
func NewSignatureDoc(s signed.Signature) SignatureDoc {
	return SignatureDoc{signatureSchema, s.Armored}
}

// NewKeyDoc is the artifact of the line that lists a key.
func NewKeyDoc(line string) KeyDoc { return KeyDoc{keySchema, line} }

// ReadKeys reads whose signatures count from the tree that a Policy was read from.
// Where there is no list that can be read, the Err of what it returns says why.
func ReadKeys(tree fs.FS, p policy.Policy) signed.Keys {
	raw, err := p.ReadKeys(tree)
	if err != nil {
		return signed.Keys{Err: err}
	}
	allowed, err := sshsig.ParseAllowedSigners(raw)
	if err != nil {
		return signed.Keys{Listed: allowed, Err: fmt.Errorf("approvals.keys: %s: %w", p.Approvals.Keys, err)}
	}
	return signed.Keys{Allowed: allowed, Listed: allowed, Forge: p.Approvals.ForgeKeys, Hardware: p.Approvals.Hardware, PIN: p.Approvals.PIN}
}

// Shown is the hash of the risks that are recorded with a transaction, which a signed
// decision on it names, "" where there are none.
func Shown(log *ledger.Log) string {
	risks := log.Artifacts(ledger.KindRisks)
	if len(risks) != 1 {
		return ""
	}
	return risks[0].StoredSHA256
}

// A Party tells who proposed a patch and who asked for it, by the paths of the artifacts that say so.
type Party struct {
	Proposers  map[string][]ledger.Actor
	Requesters map[string][]ledger.Requester
}

// ReadParty reads it from a transaction's directory.
func ReadParty(dir fs.FS, log *ledger.Log) Party {
	return Party{ledger.Proposers(dir, log), ledger.Requesters(dir, log)}
}

// Subject is what a signed decision on a transaction must be about: by the events before it, which are all
// where it is not recorded yet. It is an error where the transaction says too little for one.
func Subject(log *ledger.Log, party Party, d ledger.ApprovalDecision) (signed.Subject, error) {
	p := log.Transaction().Pointers.Proposal
	if p == nil {
		return signed.Subject{}, errors.New("nothing is proposed")
	}
	about := signed.Subject{
		Repository: p.Repository, PullRequest: p.PullRequest, TransactionID: log.Meta().TransactionID, BaseCommit: log.Meta().BaseCommit,
		PatchID: p.PatchID, Shown: Shown(log),
		Proposers: []ledger.Actor{log.Meta().Proposer}, RequestedBy: append([]ledger.Requester{}, p.RequestedBy...), Policies: []ledger.PolicyRef{d.Policy},
	}
	for _, event := range log.Payloads() {
		if same, is := event.(*ledger.ApprovalDecision); is && same.ApprovalRequestID == d.ApprovalRequestID {
			break
		}
		switch event := event.(type) {
		case *ledger.ApprovalRequest:
			if event.Policy.SHA256 == d.Policy.SHA256 {
				about.Policies = append(about.Policies, event.Policy)
			}
		case *ledger.ArtifactStored:
			if event.Kind != ledger.KindAgain && event.Kind != ledger.KindElsewhere {
				continue
			}
			by, told := party.Requesters[event.Path]
			if !told || len(party.Proposers[event.Path]) == 0 {
				return about, fmt.Errorf("%s cannot be read, which says who proposed it too", event.Path)
			}
			about.Proposers, about.RequestedBy = append(about.Proposers, party.Proposers[event.Path]...), append(about.RequestedBy, by...)
		}
	}
	slices.SortFunc(about.Proposers, ledger.CompareActors)
	about.Proposers, about.RequestedBy = slices.Compact(about.Proposers), append([]ledger.Requester{}, ledger.SortRequesters(about.RequestedBy)...)
	var err error
	if about.Began, err = log.Time(0); err != nil {
		return about, err
	}
	if about.Shown == "" {
		return about, errors.New("no risks are recorded with the transaction, so that nobody can sign what was shown: review the change again")
	}
	return about, nil
}

// IsOf says why a signature is not that of a decision which answers a request of some
// kind, nil if it is.
func IsOf(s signed.Statement, d ledger.ApprovalDecision, kind string) error {
	want := d.Decision
	if kind == policy.KindBreakGlass && want == ledger.Approve {
		want = signed.BreakGlass
	}
	switch {
	case s.Decision != want:
		return fmt.Errorf("it was signed to %s, and not to %s", s.Decision, want)
	case !slices.Contains(s.Fingerprints, d.Fingerprint):
		return fmt.Errorf("it was not signed for %s", d.Fingerprint)
	case s.Reason != d.Reason:
		return errors.New("it was signed with another reason")
	}
	return nil
}

// ReadSignature reads from the record what a decision was signed with, and the line of
// the key. The artifacts must have been stored before the decision.
func ReadSignature(dir fs.FS, log *ledger.Log, d ledger.ApprovalDecision) (s signed.Signature, line string, err error) {
	named := d.Source.Signature
	if named == nil {
		return s, "", errors.New("it has none")
	}
	var (
		armored SignatureDoc
		key     KeyDoc
		stored  = map[string]*ledger.ArtifactStored{}
	)
	for _, p := range log.Payloads() {
		if same, ok := p.(*ledger.ApprovalDecision); ok && same.ApprovalRequestID == d.ApprovalRequestID {
			break
		}
		if a, ok := p.(*ledger.ArtifactStored); ok {
			stored[a.Kind+" "+a.Path] = a
		}
	}
	find := func(kind, file string) *ledger.ArtifactStored {
		a := stored[kind+" "+file]
		if a == nil {
			err = fmt.Errorf("its %s is not recorded before it", kind)
		}
		return a
	}
	statement, signature, keyLine := find(KindDecision, named.Statement), find(KindSignature, named.Signature), find(KindKey, named.Key)
	if err != nil {
		return s, "", err
	}
	raw, err := fs.ReadFile(dir, statement.Path)
	if err == nil {
		s.Statement, err = signed.Parse(raw)
	}
	if err == nil {
		err = readArtifact(dir, signature, &armored)
	}
	if err == nil {
		err = readArtifact(dir, keyLine, &key)
	}
	if err == nil && (armored.Schema != signatureSchema || key.Schema != keySchema) {
		err = errors.New("its signature, or its key, is of an unknown schema")
	}
	s.Armored = armored.Armored
	return s, key.Line, err
}

// DecidedIn is when a decision was recorded: the time of its event.
func DecidedIn(log *ledger.Log, d ledger.ApprovalDecision) (time.Time, error) {
	for i, p := range log.Payloads() {
		if same, ok := p.(*ledger.ApprovalDecision); ok && same.ApprovalRequestID == d.ApprovalRequestID {
			return log.Time(i)
		}
	}
	return time.Time{}, errors.New("the decision is not recorded")
}

// signatures verifies the signatures of a record from the record alone: by the lines
// of the keys that it has, each once.
type signatures struct {
	dir   fs.FS
	log   *ledger.Log
	known map[string]provenSignature // by the id of the request that is answered
}

type provenSignature struct {
	signed.Signature
	proof sshsig.Proof
	err   error
}

func (s *signatures) of(d ledger.ApprovalDecision) provenSignature {
	known, ok := s.known[d.ApprovalRequestID]
	if !ok {
		known.Signature, known.proof, known.err = s.prove(d)
		if s.known == nil {
			s.known = map[string]provenSignature{}
		}
		s.known[d.ApprovalRequestID] = known
	}
	return known
}

// prove holds the recorded signature of a decision to the recorded line.
func (s *signatures) prove(d ledger.ApprovalDecision) (signed.Signature, sshsig.Proof, error) {
	fail := func(err error) (signed.Signature, sshsig.Proof, error) {
		return signed.Signature{}, sshsig.Proof{}, err
	}
	signature, line, err := ReadSignature(s.dir, s.log, d)
	if err != nil {
		return fail(err)
	}
	about, err := Subject(s.log, ReadParty(s.dir, s.log), d)
	if err != nil {
		return fail(err)
	}
	at, err := DecidedIn(s.log, d)
	if err != nil {
		return fail(err)
	}
	allowed, err := sshsig.ParseAllowedSigners([]byte(line))
	if err != nil || strings.Contains(line, "\n") {
		return fail(errors.New("the line of its key is not one of a list of keys"))
	}
	proof, err := signed.Verify(signature, about, signed.Keys{Allowed: allowed}, d.Source, at)
	if err == nil {
		err = IsOf(signature.Statement, d, s.log.Request(d.ApprovalRequestID).Kind)
	}
	named := d.Source.Signature
	if err == nil && (proof.Fingerprint != named.KeyFingerprint || proof.Principal != named.Principal) {
		err = errors.New("it names another key, or another principal, than the line of its key")
	}
	if err != nil {
		return fail(err)
	}
	return signature, proof, nil
}

// People is Case.People of a transaction in a ledger's tree: by a list, which may be
// empty, and by the lines that its record has, so that a verdict from the record alone
// tells no two people apart whom this one does not.
func People(tree fs.FS, log *ledger.Log, list sshsig.Allowed) func(names ...string) []string {
	return people(log, list, func(name string) ([]byte, error) {
		return ledger.ReadFile(tree, log.Transaction().TransactionID, name)
	})
}

func people(log *ledger.Log, list sshsig.Allowed, read func(name string) ([]byte, error)) func(names ...string) []string {
	lists := sync.OnceValue(func() []sshsig.Allowed {
		all := []sshsig.Allowed{list}
		for _, a := range log.Artifacts(KindKey) {
			var key KeyDoc
			raw, err := read(a.Path)
			if err == nil {
				err = format.Unmarshal("it", raw, &key)
			}
			if err != nil {
				continue // no decision with this line counts
			}
			if allowed, err := sshsig.ParseAllowedSigners([]byte(key.Line)); err == nil {
				all = append(all, allowed)
			}
		}
		return all
	})
	return func(names ...string) []string { return sshsig.Person(names, lists()...) }
}

// signedAt is Case.Signed by the record, under a Policy.
func (s *signatures) signedAt(p policy.Policy) func(ledger.ApprovalDecision) (time.Time, error) {
	return func(d ledger.ApprovalDecision) (time.Time, error) {
		known := s.of(d)
		if known.err != nil {
			return time.Time{}, known.err
		}
		if err := (signed.Keys{Hardware: p.Approvals.Hardware, PIN: p.Approvals.PIN}).Take(known.proof); err != nil {
			return time.Time{}, err
		}
		return time.Parse(time.RFC3339, known.Statement.DecidedAt)
	}
}

// SignedAsRecorded is Case.Signed of a verdict that is history: by the lines of the
// keys that the record has.
func SignedAsRecorded(dir fs.FS, log *ledger.Log, p policy.Policy) func(ledger.ApprovalDecision) (time.Time, error) {
	return (&signatures{dir: dir, log: log}).signedAt(p)
}

// check tells what is wrong with the signature of a decision, nil if it has none and
// needs none. Of a pull request it must be the one in the text of its evidence, which
// may be nil.
func (s *signatures) check(ps *Policies, d *ledger.ApprovalDecision, evidence *StatementDoc) error {
	var posted signed.Signature
	isPosted := false
	if evidence != nil {
		var err error
		posted, _, err = ParseSigned(evidence.Text)
		isPosted = err == nil
	}
	switch {
	case d.Source.Signature == nil && isPosted && d.Decision == ledger.Approve:
		return errors.New("what was posted is signed, but its signature is not recorded")
	case d.Source.Signature == nil:
		return nil
	}
	known := s.of(*d)
	if known.err != nil {
		return known.err
	}
	if signed.IsForge(d.Source) && (!isPosted || posted.String() != known.String()) {
		return errors.New("what was posted has another signature, or none")
	}
	p, _, err := ps.Recorded(s.dir, s.log, d.Policy)
	if err != nil {
		return err
	}
	if p.Approvals.Signing() == policy.SignedOff {
		return errors.New("the Policy took none (approvals.signed)")
	}
	_, err = s.signedAt(p)(*d)
	return err
}
